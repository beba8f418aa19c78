"""Inference servers, their slots and the snapshots of these; and exact token counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muniment.kit.channels import (
    COUNT_SECONDS,
    MAINTENANCE_SECONDS,
    READ_SECONDS,
    SLOT_SECONDS,
)
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.progress import Report
from muniment.v1 import slots_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.long_calls import reporting

__all__ = [
    "TokenCounts",
    "apply_template",
    "count_tokens",
    "delete_snapshot",
    "list_servers",
    "list_slots",
    "list_snapshots",
    "probe_server",
    "restore_snapshot",
    "save_snapshot",
]

_COUNTED_TEXTS = 1000
_COUNTED_BYTES = 2 * 1024 * 1024
"""What goes in one request for counts; a longer text goes alone."""

_LONGEST_MIB = 3
"""The longest text, or conversation, that the contract takes."""


@dataclass(frozen=True)
class TokenCounts:
    """How many tokens texts have, in their order."""

    counts: Sequence[int]
    tokenizers: Sequence[str]
    """Who counted. Several only where the server came or went meanwhile."""
    exact: bool
    """Whether the serving model's own tokenizer counted all of them."""
    note: str | None
    """Why not, where it did not."""


async def list_servers(
    clients: Clients,
    context: CallContext,
    *,
    server: str | None = None,
    deadline_seconds: float = READ_SECONDS,
) -> Sequence[slots_pb2.Server]:
    """The home's servers as they are found now, the usual one first; or the one of that name."""
    request = slots_pb2.ListServersRequest(server=server)
    response = await clients.to_slots.unary(
        clients.slots.ListServers, request, context, deadline_seconds
    )
    return response.servers


async def list_slots(
    clients: Clients,
    context: CallContext,
    *,
    server: str | None = None,
    deadline_seconds: float = READ_SECONDS,
) -> Sequence[slots_pb2.Slot]:
    """The slots of that server, or of the usual one."""
    request = slots_pb2.ListSlotsRequest(server=server)
    response = await clients.to_slots.unary(
        clients.slots.ListSlots, request, context, deadline_seconds
    )
    return response.slots


async def probe_server(
    clients: Clients, context: CallContext, report: Report, *, server: str | None = None
) -> slots_pb2.Server:
    """Find out what the server can do, on a slot that nobody uses."""
    found = slots_pb2.Server()
    parts = clients.to_slots.server_stream(
        clients.slots.ProbeServer,
        slots_pb2.ProbeServerRequest(server=server),
        context,
        MAINTENANCE_SECONDS,
    )
    async for part in reporting(parts, report):
        found = part.result
    return found


async def count_tokens(
    clients: Clients,
    context: CallContext,
    texts: Sequence[str],
    *,
    server: str | None = None,
    exact: bool = False,
) -> TokenCounts:
    """How many tokens each text has; with `exact` an estimate is an error.

    Raises:
        InvalidArgumentError: A text is too long. It is not counted in parts, since tokens may
            reach across where it is cut.
    """
    for text in texts:
        _check_length(text, "text")
    counts: list[int] = []
    tokenizers: dict[str, None] = {}
    note: str | None = None
    all_exact = True
    for some in _portions(texts):
        request = slots_pb2.CountTokensRequest(texts=some, server=server, exact=exact)
        response = await clients.to_slots.unary(
            clients.slots.CountTokens,
            request,
            context,
            COUNT_SECONDS,
            patience_seconds=READ_SECONDS,
        )
        counts.extend(response.counts)
        tokenizers[response.tokenizer] = None
        all_exact = all_exact and response.exact
        if response.HasField("note"):
            note = response.note
    return TokenCounts(counts, list(tokenizers), all_exact, note)


def _check_length(text: str, field: str) -> None:
    if len(text.encode()) > _LONGEST_MIB * 1024 * 1024:
        raise InvalidArgumentError(
            f"has more than {_LONGEST_MIB} MiB",
            reason="CONTENT_TOO_LONG",
            field=field,
            fix="count it in parts; their sum is then an estimate",
        )


def _portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, as many together as one request takes."""
    some: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if some and (len(some) == _COUNTED_TEXTS or size + length > _COUNTED_BYTES):
            yield some
            some, size = [], 0
        some.append(text)
        size += length
    if some:
        yield some


async def apply_template(
    clients: Clients,
    context: CallContext,
    messages_json: str,
    *,
    tools_json: str | None = None,
    server: str | None = None,
) -> slots_pb2.ApplyTemplateResponse:
    """The conversation as the server's chat template writes it, and its tokens.

    Raises:
        InvalidArgumentError: It is too long.
    """
    _check_length(messages_json, "messages")
    request = slots_pb2.ApplyTemplateRequest(
        messages_json=messages_json, tools_json=tools_json, server=server
    )
    return await clients.to_slots.unary(
        clients.slots.ApplyTemplate,
        request,
        context,
        COUNT_SECONDS,
        patience_seconds=READ_SECONDS,
    )


async def save_snapshot(
    clients: Clients,
    context: CallContext,
    *,
    server: str | None = None,
    deadline_seconds: float = SLOT_SECONDS,
    patience_seconds: float = READ_SECONDS,
) -> slots_pb2.SaveSnapshotResponse:
    """Save the context's slot into a file; on return it is on disk and indexed."""
    return await clients.to_slots.unary(
        clients.slots.SaveSnapshot,
        slots_pb2.SaveSnapshotRequest(server=server),
        context,
        deadline_seconds,
        patience_seconds=patience_seconds,
    )


async def restore_snapshot(
    clients: Clients,
    context: CallContext,
    path: str,
    *,
    server: str | None = None,
    deadline_seconds: float = SLOT_SECONDS,
    patience_seconds: float = READ_SECONDS,
) -> slots_pb2.RestoreSnapshotResponse:
    """Load a snapshot, given by its file or its id, into the context's slot."""
    return await clients.to_slots.unary(
        clients.slots.RestoreSnapshot,
        slots_pb2.RestoreSnapshotRequest(path=path, server=server),
        context,
        deadline_seconds,
        patience_seconds=patience_seconds,
    )


async def list_snapshots(
    clients: Clients, context: CallContext, *, of_session: bool = False, of_project: bool = False
) -> slots_pb2.ListSnapshotsResponse:
    """The snapshots that are indexed, newest first."""
    request = slots_pb2.ListSnapshotsRequest(of_session=of_session, of_project=of_project)
    return await clients.to_slots.unary(clients.slots.ListSnapshots, request, context, READ_SECONDS)


async def delete_snapshot(
    clients: Clients, context: CallContext, snapshot_id: str
) -> slots_pb2.DeleteSnapshotResponse:
    """Forget a snapshot and remove its file, where that can be reached."""
    return await clients.to_slots.unary(
        clients.slots.DeleteSnapshot,
        slots_pb2.DeleteSnapshotRequest(snapshot_id=snapshot_id),
        context,
        SLOT_SECONDS,
        patience_seconds=READ_SECONDS,
    )
