"""A small service for tests of the kit: it does what the test tells it to."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from muniment.kit.channels import open_channel
from muniment.kit.clock import Clock, SystemClock
from muniment.kit.context import CallContext
from muniment.kit.interceptors import call_context, interceptors
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.kit.server import Service, serve
from muniment.kit.settings import Settings
from muniment.v1 import memory_pb2
from tests.support.seams import FakeClock

__all__ = [
    "CONTRACT",
    "DEADLINE_SECONDS",
    "Probe",
    "check_health",
    "listening",
    "probe_service",
    "served",
]

DEADLINE_SECONDS = 20.0
CONTRACT = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name

_Call = grpc.aio.ServicerContext[Any, Any]


async def _nothing() -> None:
    """Do nothing."""


class Probe:
    """Speaks one method of each arity of the memory contract."""

    def __init__(self) -> None:
        self.does: Callable[[], Awaitable[None]] = _nothing
        self.contexts: list[CallContext] = []

    def register(self, server: grpc.aio.Server) -> None:
        """Serve the methods."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "GetStats": grpc.unary_unary_rpc_method_handler(
                self._get_stats,
                memory_pb2.GetStatsRequest.FromString,
                memory_pb2.GetStatsResponse.SerializeToString,
            ),
            "CommitLargeEpisode": grpc.stream_unary_rpc_method_handler(
                self._commit_large_episode,
                memory_pb2.CommitLargeEpisodeRequest.FromString,
                memory_pb2.CommitLargeEpisodeResponse.SerializeToString,
            ),
            "ReadEpisode": grpc.unary_stream_rpc_method_handler(
                self._read_episode,
                memory_pb2.ReadEpisodeRequest.FromString,
                memory_pb2.ReadEpisodeResponse.SerializeToString,
            ),
        }
        handler = grpc.method_handlers_generic_handler(CONTRACT, methods)
        server.add_generic_rpc_handlers((handler,))

    async def _get_stats(
        self, request: memory_pb2.GetStatsRequest, context: _Call
    ) -> memory_pb2.GetStatsResponse:
        await self._act()
        return memory_pb2.GetStatsResponse(episodes=len(self.contexts))

    async def _commit_large_episode(
        self, request_iterator: AsyncIterator[memory_pb2.CommitLargeEpisodeRequest], context: _Call
    ) -> memory_pb2.CommitLargeEpisodeResponse:
        await self._act()
        size = 0
        async for part in request_iterator:
            size += len(part.content_chunk)
        episode = memory_pb2.Episode(content_bytes=size)
        return memory_pb2.CommitLargeEpisodeResponse(episode=episode)

    async def _read_episode(
        self, request: memory_pb2.ReadEpisodeRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.ReadEpisodeResponse]:
        yield memory_pb2.ReadEpisodeResponse(content_chunk=b"first")
        await self._act()
        yield memory_pb2.ReadEpisodeResponse(content_chunk=b"second")

    async def _act(self) -> None:
        self.contexts.append(call_context())
        await self.does()


def probe_service(probe: Probe, name: str = "probe") -> Service:
    """The probe as a service of that name."""
    return Service(
        name=name,
        contracts=(CONTRACT,),
        register=probe.register,
        limits={"hits": 7},
    )


@asynccontextmanager
async def listening(probe: Probe, home: Home, name: str = "probe") -> AsyncIterator[Metrics]:
    """The probe behind the house's interceptors, and what they count. It ends without draining."""
    metrics = Metrics(name)
    server = grpc.aio.server(interceptors=interceptors(metrics, FakeClock()))
    probe.register(server)
    server.add_secure_port(
        f"unix:{home.socket(name)}", grpc.local_server_credentials(grpc.LocalConnectionType.UDS)
    )
    await server.start()
    try:
        yield metrics
    finally:
        await server.stop(None)


@asynccontextmanager
async def served(
    service: Service,
    home: Home,
    *,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """The service, up in this process; after the block it is told to stop as supervisord does."""
    task = asyncio.create_task(serve(service, home, settings or Settings(), clock or SystemClock()))
    async with open_channel(home, service.name) as channel:
        ready = asyncio.ensure_future(channel.channel_ready())
        await asyncio.wait(
            {task, ready}, timeout=DEADLINE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        ready.cancel()
    if task.done():
        await task
    try:
        yield task
    finally:
        if not task.done():
            # `serve` has its handlers by now; without them this would end the test run.
            signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(task, DEADLINE_SECONDS)


async def check_health(
    channel: grpc.aio.Channel, name: str = "", *, timeout: float | None = DEADLINE_SECONDS
) -> str:
    """What the health service says of that contract, or of all."""
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    response = await check(health_pb2.HealthCheckRequest(service=name), timeout=timeout)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)
