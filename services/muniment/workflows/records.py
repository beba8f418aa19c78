"""Records of the context's tenant: single calls, and what streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from muniment.kit.channels import BULK_SECONDS, MAINTENANCE_SECONDS, WRITE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.progress import Report
from muniment.v1 import records_pb2
from muniment.workflows.clients import Clients

__all__ = [
    "ask",
    "every_store",
    "export_records",
    "import_records",
    "read_changes",
    "unopened_records",
]

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

_IMPORT_RECORDS = 100
_IMPORT_BYTES = 1024 * 1024
"""What goes in one message of an import; a longer record goes alone."""


async def ask(
    clients: Clients,
    context: CallContext,
    rpc: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
    request: Request,
    *,
    deadline_seconds: float = WRITE_SECONDS,
) -> Response:
    """One call of the records service; a write is on disk when it returns, and search sees it."""
    return await clients.to_memory.unary(rpc, request, context, deadline_seconds)


async def every_store(clients: Clients, caller: str) -> list[CallContext]:
    """A context for each store of the memory service: its own, then each tenant's records."""
    own = CallContext(caller=caller)
    request = records_pb2.ListTenantsRequest()
    found = await ask(clients, own, clients.records.ListTenants, request)
    return [own, *(replace(own, tenant_id=one.tenant_id) for one in found.tenants)]


async def unopened_records(clients: Clients, caller: str) -> Sequence[records_pb2.UnopenedRecords]:
    """Records of tenants that are there and could not be opened."""
    own, request = CallContext(caller=caller), records_pb2.ListTenantsRequest()
    return (await ask(clients, own, clients.records.ListTenants, request)).unopened


async def read_changes(
    clients: Clients, context: CallContext, after: int, limit: int
) -> AsyncIterator[records_pb2.ReadChangesResponse]:
    """What changed behind the position, in pages; all for limit 0."""
    request = records_pb2.ReadChangesRequest(after_position=after, limit=limit)
    async for page in clients.to_memory.server_stream(
        clients.records.ReadChanges, request, context, BULK_SECONDS
    ):
        yield page


async def export_records(
    clients: Clients,
    context: CallContext,
    write: Callable[[records_pb2.Record], object],
    report: Report,
    *,
    begin: Callable[[records_pb2.ExportEnd], object] = lambda end: None,
) -> records_pb2.ExportEnd:
    """Hand every record of one moment to `write`; and say what they were of.

    `begin` is told before the first record, without the counts.
    """
    end: records_pb2.ExportEnd | None = None
    done = 0
    async for page in clients.to_memory.server_stream(
        clients.records.ExportRecords,
        records_pb2.ExportRecordsRequest(),
        context,
        MAINTENANCE_SECONDS,
    ):
        if page.HasField("end"):
            if end is None:
                begin(page.end)
            end = page.end
        for record in page.records:
            write(record)
        done += len(page.records)
        report("exporting records", done, 0)
    assert end is not None
    return end


async def import_records(
    clients: Clients,
    context: CallContext,
    records: Iterable[records_pb2.Record],
    report: Report,
    *,
    replace: bool,
    source: str,
) -> records_pb2.ImportRecordsResponse:
    """Send the records to be taken in, as they are or as the next generation.

    They are gone through again where the service vanished meanwhile. What they raise is raised.
    """
    failure: Exception | None = None

    def parts() -> Iterator[records_pb2.ImportRecordsRequest]:
        nonlocal failure
        try:
            yield from messages()
        except Exception as error:
            # The transport would only say that the call was cancelled.
            failure = error
            raise

    def messages() -> Iterator[records_pb2.ImportRecordsRequest]:
        header = records_pb2.ImportHeader(replace=replace, source=source)
        yield records_pb2.ImportRecordsRequest(header=header)
        part, size = records_pb2.ImportRecordsRequest(), 0
        for done, record in enumerate(records, start=1):
            size += record.ByteSize()
            if part.records and (len(part.records) == _IMPORT_RECORDS or size > _IMPORT_BYTES):
                yield part
                part, size = records_pb2.ImportRecordsRequest(), record.ByteSize()
            part.records.append(record)
            report("importing records", done, 0)
        if part.records:
            yield part

    try:
        return await clients.to_memory.client_stream(
            clients.records.ImportRecords, parts, context, MAINTENANCE_SECONDS
        )
    except BaseException:
        if failure is not None:
            raise failure from None
        raise
