"""Errors cross a real server and arrive as they were raised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import grpc
import pytest
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from muniment.kit import errors
from muniment.kit.channels import open_channel
from muniment.kit.context import CallContext
from muniment.kit.paths import Home
from muniment.kit.rpc_errors import from_rpc_error, to_status
from muniment.v1 import memory_pb2, memory_pb2_grpc
from tests.support.probe import DEADLINE_SECONDS, Probe, probe_service, served

KINDS = {
    errors.InvalidArgumentError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.ConflictError: grpc.StatusCode.ALREADY_EXISTS,
    errors.PreconditionError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.LimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.TimedOutError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.TamperedError: grpc.StatusCode.DATA_LOSS,
    errors.InternalError: grpc.StatusCode.INTERNAL,
}


def raising(error: Exception) -> Callable[[], Awaitable[None]]:
    async def does() -> None:
        raise error

    return does


async def failure(home: Home, does: Callable[[], Awaitable[None]]) -> grpc.aio.AioRpcError:
    """What a client sees of a call in which that happens."""
    probe = Probe()
    probe.does = does
    async with served(probe_service(probe), home), open_channel(home, "probe") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await memory_pb2_grpc.MemoryServiceStub(channel).GetStats(
                memory_pb2.GetStatsRequest(),
                timeout=DEADLINE_SECONDS,
                metadata=CallContext().to_metadata(),
            )
    return failed.value


def test_every_kind_of_error_has_a_code() -> None:
    exported = {getattr(errors, name) for name in errors.__all__}
    assert exported - {errors.MunimentError} == set(KINDS)
    assert len(set(KINDS.values())) == len(KINDS)


@pytest.mark.parametrize(("kind", "code"), KINDS.items())
@pytest.mark.parametrize(
    ("field", "fix"), [(None, None), ("corrects", "give the id"), ("k", None), (None, "wait")]
)
async def test_it_arrives_as_it_was_raised(
    home: Home,
    kind: type[errors.MunimentError],
    code: grpc.StatusCode,
    field: str | None,
    fix: str | None,
) -> None:
    error = kind("is unknown: ä 漢 % \n end", reason="SOME_REASON", field=field, fix=fix)
    failed = await failure(home, raising(error))
    assert failed.code() is code
    arrived = from_rpc_error(failed, "probe")
    assert type(arrived) is kind
    assert (arrived.message, arrived.reason) == (error.message, "SOME_REASON")
    assert (arrived.field, arrived.fix) == (field, fix)


@pytest.mark.parametrize("kind", KINDS)
def test_details_are_those_of_google_rpc(kind: type[errors.MunimentError]) -> None:
    status = to_status(kind("is wrong", reason="WRONG", field="query", fix="mend it"))
    ((key, raw),) = status.trailing_metadata or ()
    assert key == "grpc-status-details-bin"
    assert b"google.rpc.ErrorInfo" in raw
    assert (b"google.rpc.RetryInfo" in raw) == (kind is errors.UnavailableError)
    assert b"google.rpc.BadRequest" in raw


async def test_the_field_stands_in_a_bad_request(home: Home) -> None:
    error = errors.InvalidArgumentError("is empty", reason="CONTENT_EMPTY", field="content")
    failed = await failure(home, raising(error))
    status = rpc_status.from_call(failed)  # type: ignore[arg-type]
    assert status is not None
    found = error_details_pb2.BadRequest()
    assert any(detail.Unpack(found) for detail in status.details)
    (violation,) = found.field_violations
    assert (violation.field, violation.description, violation.reason) == (
        "content",
        "is empty",
        "CONTENT_EMPTY",
    )


async def test_a_long_message_arrives_too(home: Home) -> None:
    error = errors.NotFoundError("x" * 1000 + "é" * 300, reason="LONG", fix="y" * 500)
    arrived = from_rpc_error(await failure(home, raising(error)), "probe")
    assert (arrived.message, arrived.fix) == (error.message, error.fix)


@pytest.mark.parametrize(
    "defect", [ValueError("hunter2 in /home/somebody"), KeyError("hunter2"), AssertionError()]
)
async def test_a_defect_is_internal_and_tells_nothing(
    home: Home, logs: list[MutableMapping[str, Any]], defect: Exception
) -> None:
    failed = await failure(home, raising(defect))
    arrived = from_rpc_error(failed, "probe")
    assert type(arrived) is errors.InternalError
    assert arrived.reason == "INTERNAL"
    assert "muniment logs" in (arrived.fix or "")
    shown = f"{failed.details()}{failed.debug_error_string()}{failed.trailing_metadata()}"
    assert "hunter2" not in shown
    assert "Error(" not in shown
    assert [one["event"] for one in logs if one.get("exc_info")] == ["call failed"]


def transport(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    """An error that gRPC itself makes."""
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, nothing, nothing, "socket closed at /run/x")


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.UnavailableError, "SERVICE_UNAVAILABLE"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.TimedOutError, "DEADLINE_EXCEEDED"),
        (grpc.StatusCode.UNIMPLEMENTED, errors.PreconditionError, "SERVICE_OLDER"),
        (grpc.StatusCode.CANCELLED, errors.InternalError, "RPC_FAILED"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.LimitError, "RPC_FAILED"),
    ],
)
def test_errors_of_the_transport_are_put_in_our_words(
    code: grpc.StatusCode, kind: type[errors.MunimentError], reason: str
) -> None:
    told = from_rpc_error(transport(code), "memory")
    assert type(told) is kind
    assert told.reason == reason
    assert "memory" in told.message
    assert "muniment" in (told.fix or "") or "call again" in (told.fix or "")
    assert "socket closed" not in str(told)


def test_details_of_somebody_else_are_not_taken_for_ours() -> None:
    status = status_pb2.Status(code=code_pb2.RESOURCE_EXHAUSTED, message="is full")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="QUOTA", domain="elsewhere"))
    foreign = grpc.aio.Metadata(*(rpc_status.to_status(status).trailing_metadata or ()))
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), foreign, "is full")
    assert from_rpc_error(error, "memory").reason == "RPC_FAILED"


async def test_a_service_that_is_not_there_is_unavailable(home: Home) -> None:
    async with open_channel(home, "probe") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await memory_pb2_grpc.MemoryServiceStub(channel).GetStats(
                memory_pb2.GetStatsRequest(), timeout=DEADLINE_SECONDS
            )
    told = from_rpc_error(failed.value, "probe")
    assert type(told) is errors.UnavailableError
    assert told.message == "the probe service does not answer"


async def test_a_method_that_an_older_service_has_not_is_told(home: Home) -> None:
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await memory_pb2_grpc.MemoryServiceStub(channel).ListPins(
                memory_pb2.ListPinsRequest(), timeout=DEADLINE_SECONDS
            )
    told = from_rpc_error(failed.value, "probe")
    assert told.reason == "SERVICE_OLDER"
    assert told.fix == "run `muniment restart probe`; nothing of this call was done"
