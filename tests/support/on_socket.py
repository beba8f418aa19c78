"""Servicers of the test's own process on the sockets of a home."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc

from muniment.kit.channels import open_channel
from muniment.kit.interceptors import interceptors
from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from tests.support.seams import FakeClock

__all__ = ["serving"]


@asynccontextmanager
async def serving(
    home: Home, service: str, register: Callable[[grpc.aio.Server], None]
) -> AsyncIterator[None]:
    """What `register` adds to a server, on the service's socket, until the block ends."""
    server = grpc.aio.server(
        interceptors=interceptors(Metrics(service), FakeClock()),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ],
    )
    register(server)
    server.add_secure_port(
        f"unix:{home.socket(service)}",
        grpc.local_server_credentials(grpc.LocalConnectionType.UDS),
    )
    await server.start()
    async with open_channel(home, service) as channel:
        await channel.channel_ready()
        try:
            yield
        finally:
            await server.stop(None)
