"""What happens around every call, unary or streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc
import pytest

from muniment.kit.channels import open_channel
from muniment.kit.context import METADATA_KEY, CallContext
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.kit.rpc_errors import from_rpc_error
from muniment.v1 import common_pb2, common_pb2_grpc, memory_pb2, memory_pb2_grpc
from tests.support.metrics import samples
from tests.support.probe import (
    CONTRACT,
    DEADLINE_SECONDS,
    Probe,
    check_health,
    listening,
    probe_service,
    served,
)

CONTEXT = CallContext(
    project_id="proj_1",
    project_root="/home/é",
    session_id="s-1",
    slot_id=3,
    caller="test",
    traceparent="00-1",
    idempotency_key="key",
)
Metadata: TypeAlias = tuple[tuple[str, bytes], ...]
# The asynchronous stub is a type only.
Stub: TypeAlias = "memory_pb2_grpc.MemoryServiceAsyncStub"
Call: TypeAlias = "Callable[[Stub, float | None, Metadata], Awaitable[object]]"


async def unary(stub: Stub, timeout: float | None, metadata: Metadata) -> object:
    return await stub.GetStats(memory_pb2.GetStatsRequest(), timeout=timeout, metadata=metadata)


async def streams_in(stub: Stub, timeout: float | None, metadata: Metadata) -> object:
    parts = [memory_pb2.CommitLargeEpisodeRequest(content_chunk=b"xy")] * 3
    return await stub.CommitLargeEpisode(iter(parts), timeout=timeout, metadata=metadata)


async def streams_out(stub: Stub, timeout: float | None, metadata: Metadata) -> object:
    call = stub.ReadEpisode(memory_pb2.ReadEpisodeRequest(), timeout=timeout, metadata=metadata)
    try:
        return [part.content_chunk async for part in call]
    finally:
        call.cancel()


ARITIES = pytest.mark.parametrize(
    ("call", "method"),
    [(unary, "GetStats"), (streams_in, "CommitLargeEpisode"), (streams_out, "ReadEpisode")],
)


@asynccontextmanager
async def a_stub(home: Home, probe: Probe) -> AsyncIterator[tuple[Stub, Metrics]]:
    """A stub of a server with the house's interceptors, and what they count."""
    async with listening(probe, home) as metrics, open_channel(home, "probe") as channel:
        yield memory_pb2_grpc.MemoryServiceStub(channel), metrics


def counted(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Calls that ended, by method and code."""
    return {
        (method.removeprefix(f"/{CONTRACT}/"), code): value
        for (name, method, code), value in samples(metrics.render()).items()
        if name == "muniment_rpc_calls_total"
    }


def running(metrics: Metrics) -> float:
    return samples(metrics.render())["muniment_rpc_running", "", ""]


@ARITIES
async def test_the_context_reaches_the_method(home: Home, call: Call, method: str) -> None:
    probe = Probe()
    async with a_stub(home, probe) as (stub, metrics):
        await call(stub, DEADLINE_SECONDS, CONTEXT.to_metadata())
        await call(stub, DEADLINE_SECONDS, ())
        assert probe.contexts == [CONTEXT, CallContext()]
        assert counted(metrics) == {(method, "OK"): 2}
        assert running(metrics) == 0


async def test_streams_pass_through_whole(home: Home) -> None:
    async with a_stub(home, Probe()) as (stub, _):
        large = await streams_in(stub, DEADLINE_SECONDS, ())
        assert isinstance(large, memory_pb2.CommitLargeEpisodeResponse)
        assert large.episode.content_bytes == 6
        assert await streams_out(stub, DEADLINE_SECONDS, ()) == [b"first", b"second"]


@ARITIES
async def test_a_call_without_a_deadline_is_refused(home: Home, call: Call, method: str) -> None:
    probe = Probe()
    async with a_stub(home, probe) as (stub, metrics):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(stub, None, CONTEXT.to_metadata())
        refused = from_rpc_error(failed.value, "probe")
        assert type(refused) is InvalidArgumentError
        assert (refused.reason, refused.field) == ("DEADLINE_MISSING", "deadline")
        assert probe.contexts == []
        assert counted(metrics) == {(method, "INVALID_ARGUMENT"): 1}


@ARITIES
async def test_a_context_that_cannot_be_read_is_refused(
    home: Home, call: Call, method: str
) -> None:
    probe = Probe()
    async with a_stub(home, probe) as (stub, metrics):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(stub, DEADLINE_SECONDS, ((METADATA_KEY, b"\xff"),))
        assert from_rpc_error(failed.value, "probe").reason == "CONTEXT_UNREADABLE"
        assert probe.contexts == []
        assert counted(metrics) == {(method, "INVALID_ARGUMENT"): 1}


@ARITIES
@pytest.mark.parametrize(
    ("error", "code"),
    [(NotFoundError("is gone", reason="GONE"), "NOT_FOUND"), (ZeroDivisionError(), "INTERNAL")],
)
async def test_failures_are_counted_by_their_code(
    home: Home, call: Call, method: str, error: Exception, code: str
) -> None:
    probe = Probe()

    async def fail() -> None:
        raise error

    probe.does = fail
    async with a_stub(home, probe) as (stub, metrics):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(stub, DEADLINE_SECONDS, ())
        assert failed.value.code().name == code
        assert counted(metrics) == {(method, code): 1}
        assert running(metrics) == 0


@ARITIES
async def test_calls_that_are_cancelled_are_counted_as_such(
    home: Home, call: Call, method: str
) -> None:
    probe = Probe()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    probe.does = hang
    async with a_stub(home, probe) as (stub, metrics):
        task = asyncio.ensure_future(call(stub, DEADLINE_SECONDS, ()))
        async with asyncio.timeout(DEADLINE_SECONDS):
            await begun.wait()
            assert running(metrics) == 1
            task.cancel()
            await ended.wait()
            await asyncio.gather(task, return_exceptions=True)
        assert counted(metrics) == {(method, "CANCELLED"): 1}
        assert running(metrics) == 0


async def test_a_deadline_that_passes_ends_the_work(home: Home) -> None:
    probe = Probe()
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    probe.does = hang
    async with a_stub(home, probe) as (stub, _):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await unary(stub, 0.1, ())
        assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(ended.wait(), DEADLINE_SECONDS)


async def test_calls_at_the_same_time_keep_their_contexts(home: Home) -> None:
    probe = Probe()
    everyone = asyncio.Event()

    async def wait() -> None:
        if len(probe.contexts) == 20:
            everyone.set()
        await everyone.wait()

    probe.does = wait
    contexts = [CallContext(session_id=f"s-{number}") for number in range(20)]
    async with a_stub(home, probe) as (stub, metrics):
        await asyncio.gather(
            *(unary(stub, DEADLINE_SECONDS, one.to_metadata()) for one in contexts)
        )
        assert sorted(probe.contexts, key=str) == sorted(contexts, key=str)
        assert counted(metrics) == {("GetStats", "OK"): 20}


async def test_health_and_reflection_need_no_deadline_and_are_not_counted(home: Home) -> None:
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        for timeout in (None, DEADLINE_SECONDS):
            assert await check_health(channel, timeout=timeout) == "SERVING"
        told = await common_pb2_grpc.DescribeServiceStub(channel).GetMetrics(
            common_pb2.GetMetricsRequest(), timeout=DEADLINE_SECONDS
        )
    assert not any("grpc." in method for _, method, _ in samples(told.text))
