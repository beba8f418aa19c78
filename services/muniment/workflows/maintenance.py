"""Keeping the memory's store: verifying it, making its index anew, copying it."""

from __future__ import annotations

from collections.abc import Callable

from muniment.kit.channels import MAINTENANCE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.progress import Report
from muniment.v1 import maintenance_pb2
from muniment.workflows.clients import Clients

__all__ = ["backup_store", "rebuild_index", "verify_store"]


async def verify_store(
    clients: Clients,
    context: CallContext,
    report: Report,
    found: Callable[[maintenance_pb2.Finding], None],
) -> maintenance_pb2.VerifyResult:
    """Verify the store; each finding is told as it comes."""
    result = maintenance_pb2.VerifyResult()
    async for response in clients.to_memory.server_stream(
        clients.memory_maintenance.VerifyStore,
        maintenance_pb2.VerifyStoreRequest(),
        context,
        MAINTENANCE_SECONDS,
    ):
        if response.HasField("progress"):
            _report(report, response.progress)
        elif response.HasField("finding"):
            found(response.finding)
        else:
            result = response.result
    return result


async def rebuild_index(
    clients: Clients, context: CallContext, report: Report
) -> maintenance_pb2.RebuildIndexResult:
    """Make the search index anew."""
    result = maintenance_pb2.RebuildIndexResult()
    async for response in clients.to_memory.server_stream(
        clients.memory_maintenance.RebuildIndex,
        maintenance_pb2.RebuildIndexRequest(),
        context,
        MAINTENANCE_SECONDS,
    ):
        if response.HasField("progress"):
            _report(report, response.progress)
        else:
            result = response.result
    return result


async def backup_store(
    clients: Clients, context: CallContext, target_folder: str, report: Report
) -> maintenance_pb2.BackupStoreResult:
    """Copy the store into a folder that does not exist yet."""
    result = maintenance_pb2.BackupStoreResult()
    async for response in clients.to_memory.server_stream(
        clients.memory_maintenance.BackupStore,
        maintenance_pb2.BackupStoreRequest(target_folder=target_folder),
        context,
        MAINTENANCE_SECONDS,
    ):
        if response.HasField("progress"):
            _report(report, response.progress)
        else:
            result = response.result
    return result


def _report(report: Report, progress: maintenance_pb2.Progress) -> None:
    report(progress.step, progress.done, progress.total)
