"""Pinning rules and taking them away."""

from __future__ import annotations

from muniment.kit.channels import READ_SECONDS, WRITE_SECONDS
from muniment.kit.context import CallContext
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients

__all__ = ["list_pins", "pin", "unpin"]


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
