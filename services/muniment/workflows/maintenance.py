"""Keeping the stores: verifying them, making the memory's index anew, copying it."""

from __future__ import annotations

from collections.abc import Callable

from muniment.kit.channels import MAINTENANCE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.progress import Report
from muniment.v1 import maintenance_pb2
from muniment.workflows.clients import MEMORY, Clients
from muniment.workflows.long_calls import reporting

__all__ = ["backup_store", "rebuild_index", "verify_store"]


async def verify_store(
    clients: Clients,
    context: CallContext,
    report: Report,
    found: Callable[[maintenance_pb2.Finding], None],
    *,
    service: str = MEMORY,
) -> maintenance_pb2.VerifyResult:
    """Verify a store of the service; each finding is told as it comes."""
    result = maintenance_pb2.VerifyResult()
    keeper = clients.keepers[service]
    parts = keeper.caller.server_stream(
        keeper.maintenance.VerifyStore,
        maintenance_pb2.VerifyStoreRequest(),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        if part.HasField("finding"):
            found(part.finding)
        else:
            result = part.result
    return result


async def rebuild_index(
    clients: Clients, context: CallContext, report: Report
) -> maintenance_pb2.RebuildIndexResult:
    """Make the search index anew."""
    result = maintenance_pb2.RebuildIndexResult()
    parts = clients.to_memory.server_stream(
        clients.keepers[MEMORY].maintenance.RebuildIndex,
        maintenance_pb2.RebuildIndexRequest(),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        result = part.result
    return result


async def backup_store(
    clients: Clients, context: CallContext, target_folder: str, report: Report
) -> maintenance_pb2.BackupStoreResult:
    """Copy the store into a folder that does not exist yet."""
    result = maintenance_pb2.BackupStoreResult()
    parts = clients.to_memory.server_stream(
        clients.keepers[MEMORY].maintenance.BackupStore,
        maintenance_pb2.BackupStoreRequest(target_folder=target_folder),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        result = part.result
    return result
