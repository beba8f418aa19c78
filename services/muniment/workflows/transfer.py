"""Moving a memory between homes, and letting go of it: export, import, purge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from muniment.kit.channels import MAINTENANCE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.limits import CHUNK_BYTES
from muniment.kit.progress import Report
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.long_calls import reporting

__all__ = ["export_lines", "import_lines", "purge_project"]


async def export_lines(
    clients: Clients,
    context: CallContext,
    write: Callable[[bytes], object],
    report: Report,
    *,
    all_projects: bool,
) -> memory_pb2.ExportResult:
    """Hand the lines of the project, or of all, to `write`, in chunks of at most 1 MiB."""
    result = memory_pb2.ExportResult()
    parts = clients.to_memory.server_stream(
        clients.memory.Export,
        memory_pb2.ExportRequest(all_projects=all_projects),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        if part.HasField("chunk"):
            write(part.chunk)
        else:
            result = part.result
    return result


async def import_lines(
    clients: Clients,
    context: CallContext,
    read: Callable[[int], bytes],
    total_bytes: int,
    report: Report,
    remark: Callable[[memory_pb2.ImportRemark], object],
    *,
    revive: bool,
) -> memory_pb2.ImportResult:
    """Take in the lines that `read` gives, as a file's does; `total_bytes` is 0 where unknown."""

    async def requests() -> AsyncIterator[memory_pb2.ImportRequest]:
        # The first says what is wanted, even if nothing follows.
        yield memory_pb2.ImportRequest(revive=revive)
        while chunk := await asyncio.to_thread(read, CHUNK_BYTES):
            yield memory_pb2.ImportRequest(chunk=chunk)

    result = memory_pb2.ImportResult()
    parts = clients.to_memory.both_streams(
        clients.memory.Import, requests(), context, MAINTENANCE_SECONDS
    )
    # The service does not know how long the file is.
    async for part in reporting(parts, lambda step, done, _: report(step, done, total_bytes)):
        if part.HasField("remark"):
            remark(part.remark)
        else:
            result = part.result
    return result


async def purge_project(
    clients: Clients, context: CallContext, project_id: str, report: Report
) -> memory_pb2.PurgeProjectResult:
    """Take away all of a project, for good. Once begun it is finished, whoever waits for it."""
    result = memory_pb2.PurgeProjectResult()
    parts = clients.to_memory.server_stream(
        clients.memory.PurgeProject,
        memory_pb2.PurgeProjectRequest(project_id=project_id),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        result = part.result
    return result
