"""The session tools of the context reference: a slot's cache, saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Outcome, Tool
from muniment.bridge.lanes import Resource
from muniment.bridge.tools.common import WHERE, compact, where
from muniment.bridge.tools.schemas import array_of, integer, object_of, string, truth
from muniment.kit.channels import SLOT_SECONDS
from muniment.v1 import slots_pb2
from muniment.workflows.server_words import worth_in_words
from muniment.workflows.slots import restore_snapshot, save_snapshot

__all__ = ["RESTORE", "SNAPSHOT"]

_PROFILES = frozenset({"context", "all"})

_SLOT = {"session_id": string(), "slot_id": integer(minimum=0)}
"""Arguments of both."""

_SAVED = {
    "snapshot_id": string(),
    "server": string(),
    "slot_id": integer(),
    "tokens": integer(),
    "notes": array_of(string()),
    **WHERE,
}
"""What both results have."""

_OUT_OF_REACH = (
    "the file lies where the inference server writes, out of reach from here: restore it by the"
    " snapshot_id"
)


async def _snapshot(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, source = call.context(arguments.get("session_id"), arguments.get("slot_id", 0))
    response = await save_snapshot(
        call.clients,
        call.writing(context, SNAPSHOT.name, arguments),
        deadline_seconds=max(call.deadline_seconds, SLOT_SECONDS),
        patience_seconds=call.deadline_seconds,
    )
    saved = response.snapshot
    is_near = saved.HasField("file_path")
    notes = [*response.notes, *([] if is_near else [_OUT_OF_REACH])]
    if response.removed_snapshot_ids:
        notes.append(f"older snapshots had to go: {', '.join(response.removed_snapshot_ids)}")
    content = {
        "snapshot_id": saved.snapshot_id,
        "file_path": saved.file_path if is_near else None,
        "size_bytes": saved.size_bytes if saved.HasField("size_bytes") else None,
        "elapsed_ms": response.elapsed_ms,
        "server": saved.server,
        "slot_id": saved.slot_id,
        "tokens": saved.tokens,
        "notes": notes,
        **where(context, source),
    }
    return Outcome(content, compact(content))


SNAPSHOT = Tool(
    name="session.snapshot",
    title="Save the slot's cache",
    description=(
        "Before a long generation or an unavoidable rewrite, and when the day ends, save the"
        " slot's KV cache to disk."
    ),
    input_schema=object_of(_SLOT),
    output_schema=object_of(
        {
            **_SAVED,
            "file_path": {"type": ["string", "null"]},
            "size_bytes": {"type": ["integer", "null"]},
            "elapsed_ms": integer(),
        },
        *("snapshot_id", "file_path", "size_bytes", "elapsed_ms", "server", "slot_id", "tokens"),
        *("notes", "project_id", "session_source"),
    ),
    read_only=False,
    idempotent=False,
    reads=frozenset(),
    writes=frozenset({Resource.SLOT}),
    run=_snapshot,
    profiles=_PROFILES,
)


async def _restore(call: Call, arguments: Mapping[str, Any]) -> Outcome:
    context, source = call.context(arguments.get("session_id"), arguments.get("slot_id", 0))
    response = await restore_snapshot(
        call.clients,
        call.writing(context, RESTORE.name, arguments),
        arguments["path"],
        deadline_seconds=max(call.deadline_seconds, SLOT_SECONDS),
        patience_seconds=call.deadline_seconds,
    )
    saved = response.snapshot
    content = {
        "restored": True,
        "restore_time_ms": response.elapsed_ms,
        "detail": _detail(response, context.slot_id),
        "snapshot_id": saved.snapshot_id,
        "server": saved.server,
        "slot_id": context.slot_id,
        "tokens": response.restored_tokens,
        "notes": list(response.notes),
        **where(context, source),
    }
    return Outcome(content, compact(content))


def _detail(response: slots_pb2.RestoreSnapshotResponse, slot_id: int) -> str:
    """What is in the slot now, and what that was worth before."""
    saved = response.snapshot
    day = saved.created_at.ToJsonString()[:16].replace("T", " ")
    text = f"slot {slot_id} holds {response.restored_tokens} tokens saved at {day} UTC"
    if not saved.restore_worth:
        return f"{text}; what a restore of it is worth was not measured yet"
    return f"{text}; the last restore of it: {worth_in_words(saved.restore_worth[-1])}"


RESTORE = Tool(
    name="session.restore",
    title="Load a saved cache",
    description=(
        "Before the first turn of a new day, load a snapshot into the slot, so that the session"
        " need not be evaluated again."
    ),
    input_schema=object_of({"path": string("file_path or snapshot_id"), **_SLOT}, "path"),
    output_schema=object_of(
        {**_SAVED, "restored": truth(), "restore_time_ms": integer(), "detail": string()},
        *("restored", "restore_time_ms", "detail", "snapshot_id", "server", "slot_id", "tokens"),
        *("notes", "project_id", "session_source"),
    ),
    read_only=False,
    idempotent=True,
    reads=frozenset(),
    writes=frozenset({Resource.SLOT}),
    run=_restore,
    profiles=_PROFILES,
)
