"""Pinning rules and taking them away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import structlog

from muniment.kit.channels import READ_SECONDS, WRITE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients

__all__ = ["list_pins", "pin", "unpin", "watch_pins"]

_WATCH_SECONDS = 3600.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 60.0

_log = structlog.get_logger()


async def pin(
    clients: Clients,
    context: CallContext,
    request: memory_pb2.PinRequest,
    *,
    deadline_seconds: float = WRITE_SECONDS,
) -> memory_pb2.PinResponse:
    """Pin a rule to the project, or to the session that the request names."""
    return await clients.to_memory.unary(clients.memory.Pin, request, context, deadline_seconds)


async def unpin(clients: Clients, context: CallContext, pin_id: str) -> memory_pb2.PinnedRule:
    """Take a pin of the project away."""
    response = await clients.to_memory.unary(
        clients.memory.Unpin, memory_pb2.UnpinRequest(pin_id=pin_id), context, WRITE_SECONDS
    )
    return response.pin


async def list_pins(
    clients: Clients,
    context: CallContext,
    *,
    session_id: str | None = None,
    deadline_seconds: float = READ_SECONDS,
) -> memory_pb2.ListPinsResponse:
    """The pins in force in the project, and in the session where one is named."""
    return await clients.to_memory.unary(
        clients.memory.ListPins,
        memory_pb2.ListPinsRequest(session_id=session_id),
        context,
        deadline_seconds,
    )


async def watch_pins(clients: Clients) -> AsyncIterator[memory_pb2.WatchPinsResponse]:
    """Whose pins change from now on, without end: it waits for a service that is away."""
    request = memory_pb2.WatchPinsRequest()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            async for response in clients.to_memory.server_stream(
                clients.memory.WatchPins, request, CallContext(), _WATCH_SECONDS
            ):
                request.after.CopyFrom(response.position)
                pause = _FIRST_PAUSE_SECONDS
                yield response
        except MunimentError as error:
            _log.info("pins are not watched", error=str(error))
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
