"""Letting go of a project in every service that keeps something of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.kit.progress import Report
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.code import forget_index
from muniment.workflows.transfer import purge_project

__all__ = ["Purged", "purge_everywhere"]


@dataclass(frozen=True)
class Purged:
    """What a purge took away."""

    memory: memory_pb2.PurgeProjectResult | None
    """None where the memory knew nothing of the project, and only its code was indexed."""
    indexed_files: int
    """Files whose index was forgotten."""


async def purge_everywhere(
    clients: Clients, context: CallContext, project_id: str, report: Report
) -> Purged:
    """Take away all of a project, for good: its memory, then the index of its code.

    Raises:
        NotFoundError: Nothing is known of the project.
    """
    memory: memory_pb2.PurgeProjectResult | None = None
    unknown: NotFoundError | None = None
    try:
        memory = await purge_project(clients, context, project_id, report)
    except NotFoundError as error:
        unknown = error
    indexed_files = await forget_index(clients, replace(context, project_id=project_id))
    if unknown is not None and not indexed_files:
        raise unknown
    return Purged(memory, indexed_files)
