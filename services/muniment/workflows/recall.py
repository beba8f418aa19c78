"""Asking the memory."""

from __future__ import annotations

from muniment.kit.channels import READ_SECONDS
from muniment.kit.context import CallContext
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients

__all__ = ["recall"]


async def recall(
    clients: Clients,
    context: CallContext,
    request: memory_pb2.RecallRequest,
    *,
    deadline_seconds: float = READ_SECONDS,
) -> memory_pb2.RecallResponse:
    """Find the episodes and pins that answer the request."""
    return await clients.to_memory.unary(clients.memory.Recall, request, context, deadline_seconds)
