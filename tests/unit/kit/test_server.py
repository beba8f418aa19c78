"""A service's server: private, alone, self-describing, and drained when it stops."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
from importlib.metadata import version

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from muniment.kit.channels import READ_SECONDS, open_channel
from muniment.kit.context import CallContext
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.kit.server import forget_failure, free_socket
from muniment.kit.settings import Settings
from muniment.v1 import common_pb2, common_pb2_grpc, memory_pb2, memory_pb2_grpc
from tests.support.metrics import samples
from tests.support.probe import (
    CONTRACT,
    DEADLINE_SECONDS,
    Probe,
    check_health,
    probe_service,
    served,
)

CONTEXT = CallContext(project_id="proj_1").to_metadata()


async def test_only_its_owner_may_enter(home: Home) -> None:
    async with served(probe_service(Probe()), home):
        assert stat.S_IMODE(home.socket("probe").stat().st_mode) == 0o600
        assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o700
    assert not home.socket("probe").exists()


async def test_a_second_server_is_refused_and_the_first_goes_on(home: Home) -> None:
    async with served(probe_service(Probe()), home):
        with pytest.raises(PreconditionError) as refused:
            async with served(probe_service(Probe()), home):
                raise AssertionError
        assert refused.value.reason == "SOCKET_IN_USE"
        assert str(home.socket("probe")) in refused.value.message
        async with open_channel(home, "probe") as channel:
            assert await check_health(channel) == "SERVING"


@pytest.mark.parametrize("leftover", ["socket", "file"])
async def test_what_a_killed_server_left_is_reused(home: Home, leftover: str) -> None:
    path = home.socket("probe")
    if leftover == "socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    else:
        path.write_text("")
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        assert await check_health(channel) == "SERVING"


def test_no_socket_is_a_free_socket(home: Home) -> None:
    free_socket(home.socket("probe"))
    assert not home.socket("probe").exists()


async def test_all_contracts_are_healthy_while_it_serves(home: Home) -> None:
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        for name in ("", CONTRACT, "muniment.v1.DescribeService"):
            assert await check_health(channel, name) == "SERVING"
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await check_health(channel, "muniment.v1.NoService")
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


async def test_draining_lets_running_calls_finish_and_takes_no_more(home: Home) -> None:
    probe = Probe()
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await may_end.wait()

    probe.does = hold
    async with served(probe_service(probe), home) as task, open_channel(home, "probe") as channel:
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )(health_pb2.HealthCheckRequest(service=CONTRACT), timeout=DEADLINE_SECONDS)
        statuses = aiter(watch)
        assert (await anext(statuses)).status == health_pb2.HealthCheckResponse.SERVING
        running = asyncio.ensure_future(stats(channel))
        await begun.wait()
        signal.raise_signal(signal.SIGTERM)
        assert (await anext(statuses)).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        async with open_channel(home, "probe") as late:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stats(late)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not task.done()
        may_end.set()
        assert (await running).episodes == 1
        await asyncio.wait_for(asyncio.shield(task), DEADLINE_SECONDS)
    assert not home.socket("probe").exists()


async def test_a_call_that_takes_too_long_is_ended(home: Home) -> None:
    probe = Probe()
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    probe.does = hang
    settings = Settings(drain_seconds=0.1)
    async with (
        served(probe_service(probe), home, settings=settings) as task,
        open_channel(home, "probe") as channel,
    ):
        running = asyncio.ensure_future(stats(channel))
        await begun.wait()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await running
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.wait_for(asyncio.shield(task), DEADLINE_SECONDS)


async def stats(channel: grpc.aio.Channel) -> memory_pb2.GetStatsResponse:
    return await memory_pb2_grpc.MemoryServiceStub(channel).GetStats(
        memory_pb2.GetStatsRequest(), timeout=READ_SECONDS, metadata=CONTEXT
    )


async def test_it_describes_itself(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.settings_file.write_text('log_level = "warning"\n')
    monkeypatch.setenv("MUNIMENT_DRAIN_SECONDS", "1")
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        told = await common_pb2_grpc.DescribeServiceStub(channel).Describe(
            common_pb2.DescribeRequest(), timeout=READ_SECONDS
        )
    assert (told.service, told.pid) == ("probe", os.getpid())
    assert told.version == version("muniment")
    assert list(told.contracts) == ["muniment.v1"]
    assert dict(told.limits) == {"hits": 7}
    assert not told.HasField("store")
    settings = {one.name: (one.value, one.origin) for one in told.settings}
    assert settings["log_level"] == ("warning", str(home.settings_file))
    assert settings["drain_seconds"] == ("1.0", "environment")


async def test_its_metrics_can_be_asked_for(home: Home) -> None:
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        await stats(channel)
        told = await common_pb2_grpc.DescribeServiceStub(channel).GetMetrics(
            common_pb2.GetMetricsRequest(), timeout=READ_SECONDS
        )
    found = samples(told.text)
    assert found["muniment_rpc_calls_total", f"/{CONTRACT}/GetStats", "OK"] == 1
    # The call that asks is running.
    assert found["muniment_rpc_running", "", ""] == 1


async def test_reflection_lists_what_is_served(home: Home) -> None:
    async with served(probe_service(Probe()), home), open_channel(home, "probe") as channel:
        ask = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        answers = ask(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=READ_SECONDS
        )
        async for answer in answers:
            names = {one.name for one in answer.list_services_response.service}
    assert names >= {CONTRACT, "muniment.v1.DescribeService", "grpc.health.v1.Health"}


async def test_a_service_that_is_up_takes_back_why_it_could_not_start(home: Home) -> None:
    reason = home.runtime / "probe.why"
    reason.write_text("the store is newer\n")
    async with served(probe_service(Probe()), home):
        assert not reason.exists()
    forget_failure(home, "probe")
