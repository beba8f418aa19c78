"""session.snapshot and session.restore: what they ask for, what they answer, how they fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.errors import InvalidArgumentError, MunimentError, PreconditionError
from muniment.kit.settings import Settings
from muniment.v1 import slots_pb2
from tests.support.homes import a_home
from tests.support.inprocess import Front, a_worker, content
from tests.support.scripted_slots import ScriptedSlots
from tests.support.slots import a_slots, serving_slots

SNAPSHOT_ID = f"snap_{'0' * 32}"
NOTE = "restores are worth it on this server"


def a_snapshot(**more: object) -> slots_pb2.Snapshot:
    """A snapshot whose file is out of reach, unless more is said."""
    snapshot = slots_pb2.Snapshot(
        snapshot_id=SNAPSHOT_ID,
        server="main",
        slot_id=3,
        tokens=736,
        created_at=Timestamp(seconds=1_750_000_000),
    )
    for name, value in more.items():
        setattr(snapshot, name, value)
    return snapshot


@asynccontextmanager
async def a_front(slots: ScriptedSlots, cwd: Path) -> AsyncIterator[Front]:
    """A front whose slots service says what the test wants."""
    with a_home() as home:
        async with serving_slots(home, slots), a_worker(home) as worker:
            yield Front(worker, cwd)


async def test_a_snapshot_says_where_it_is(tmp_path: Path) -> None:
    saved = a_snapshot(file_path="/s/snap.slot", size_bytes=4711)
    response = slots_pb2.SaveSnapshotResponse(snapshot=saved, elapsed_ms=12, notes=[NOTE])
    slots = ScriptedSlots(SaveSnapshot=response)
    async with a_front(slots, tmp_path) as front:
        told = await content(front, "session.snapshot", session_id="night", slot_id=3)
    assert told["snapshot_id"] == SNAPSHOT_ID
    assert (told["file_path"], told["size_bytes"], told["elapsed_ms"]) == ("/s/snap.slot", 4711, 12)
    assert (told["server"], told["slot_id"], told["tokens"]) == ("main", 3, 736)
    assert told["notes"] == [NOTE]
    assert (told["session_id"], told["session_source"]) == ("night", "argument")
    ((name, _, context),) = slots.asked
    assert (name, context.slot_id, context.session_id) == ("SaveSnapshot", 3, "night")
    assert context.project_id == told["project_id"]
    assert context.idempotency_key


async def test_slot_and_session_have_defaults(tmp_path: Path) -> None:
    slots = ScriptedSlots(SaveSnapshot=slots_pb2.SaveSnapshotResponse(snapshot=a_snapshot()))
    async with a_front(slots, tmp_path) as front:
        told = await content(front, "session.snapshot")
    ((_, _, context),) = slots.asked
    assert context.slot_id == 0
    assert context.session_id == told["session_id"]
    assert told["session_source"] == "derived"


async def test_a_file_out_of_reach_is_null_and_a_note_says_what_to_use(tmp_path: Path) -> None:
    response = slots_pb2.SaveSnapshotResponse(
        snapshot=a_snapshot(), removed_snapshot_ids=["snap_1", "snap_2"]
    )
    async with a_front(ScriptedSlots(SaveSnapshot=response), tmp_path) as front:
        told = await content(front, "session.snapshot")
    assert (told["file_path"], told["size_bytes"]) == (None, None)
    out_of_reach, removed = told["notes"]
    assert "restore it by the snapshot_id" in out_of_reach
    assert removed == "older snapshots had to go: snap_1, snap_2"


async def test_a_restore_says_what_the_slot_holds_and_what_that_was_worth(tmp_path: Path) -> None:
    saved = a_snapshot()
    response = slots_pb2.RestoreSnapshotResponse(
        snapshot=saved, restored_tokens=736, elapsed_ms=7, notes=[NOTE]
    )
    slots = ScriptedSlots(RestoreSnapshot=response)
    async with a_front(slots, tmp_path) as front:
        told = await content(front, "session.restore", path=SNAPSHOT_ID, slot_id=1)
        saved.restore_worth.add(
            restored_tokens=736,
            prompt_tokens=750,
            reused_tokens=735,
            source=slots_pb2.WORTH_SOURCE_NEXT_REQUEST,
            measured_at=Timestamp(seconds=1_750_000_000),
        )
        response.snapshot.CopyFrom(saved)
        again = await content(front, "session.restore", path=SNAPSHOT_ID)
    assert (told["restored"], told["restore_time_ms"]) == (True, 7)
    assert (told["snapshot_id"], told["slot_id"], told["tokens"]) == (SNAPSHOT_ID, 1, 736)
    begin = "slot 1 holds 736 tokens saved at 2025-06-15 15:06 UTC; "
    assert told["detail"] == f"{begin}what a restore of it is worth was not measured yet"
    assert "735 of the next prompt's 750 tokens" in again["detail"]
    assert "(next request, 2025-06-15)" in again["detail"]
    _, request, context = slots.asked[0]
    assert isinstance(request, slots_pb2.RestoreSnapshotRequest)
    assert (request.path, context.slot_id) == (SNAPSHOT_ID, 1)


@pytest.mark.parametrize(("tool", "arguments"), [("snapshot", {}), ("restore", {"path": "x"})])
async def test_what_the_state_forbids_is_a_result_that_says_what_to_do(
    tmp_path: Path, tool: str, arguments: dict[str, str]
) -> None:
    failure: MunimentError = PreconditionError(
        "the inference server does not save its slot 0",
        reason="LLAMA_NOT_SUPPORTED",
        fix="start llama-server with --slot-save-path FOLDER",
    )
    slots = ScriptedSlots(SaveSnapshot=failure, RestoreSnapshot=failure)
    async with a_front(slots, tmp_path) as front:
        result = await front.call(f"session.{tool}", **arguments)
    assert result["isError"] is True
    assert result["content"][0]["text"] == str(failure)
    assert "structuredContent" not in result


async def test_a_wrong_argument_names_it(tmp_path: Path) -> None:
    failure = InvalidArgumentError("is 7", reason="SLOT_UNKNOWN", field="slot_id")
    async with a_front(ScriptedSlots(SaveSnapshot=failure), tmp_path) as front:
        refused = await front.refusal("session.snapshot", slot_id=7)
        missing = await front.refusal("session.restore")
    assert refused["data"] == {"reason": "SLOT_UNKNOWN", "field": "slot_id"}
    assert missing["data"] == {"reason": "ARGUMENT_MISSING", "field": "path"}


async def test_without_a_server_it_says_how_to_name_one(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_slots(home), a_worker(home) as worker:
            result = await Front(worker, tmp_path).call("session.snapshot")
    assert result["isError"] is True
    assert "no inference server is configured; set `llama_url`" in result["content"][0]["text"]


async def test_a_service_that_is_away_is_not_waited_for_as_long_as_a_save(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_worker(home, settings=Settings(call_deadline_seconds=1)) as worker:
            result = await Front(worker, tmp_path).call("session.snapshot")
    assert result["isError"] is True
    assert "slots service did not come back" in result["content"][0]["text"]


async def test_slots_are_used_in_order_and_nobody_else_waits_for_them(tmp_path: Path) -> None:
    slots = ScriptedSlots(
        SaveSnapshot=slots_pb2.SaveSnapshotResponse(snapshot=a_snapshot()),
        RestoreSnapshot=slots_pb2.RestoreSnapshotResponse(snapshot=a_snapshot()),
    )
    slots.may_answer.clear()
    async with a_front(slots, tmp_path) as front:
        calls = [
            front.send("tools/call", {"name": "session.snapshot", "arguments": {}}),
            front.send(
                "tools/call", {"name": "session.restore", "arguments": {"path": SNAPSHOT_ID}}
            ),
        ]
        await slots.has_begun.wait()
        # A prompt needs no service, and everything that came before it has had its chance.
        await front.ask("prompts/get", {"name": "sakur4_system_preamble"})
        assert [name for name, _, _ in slots.asked] == ["SaveSnapshot"]
        slots.may_answer.set()
        for call in calls:
            await front.reply(call)
    assert [name for name, _, _ in slots.asked] == ["SaveSnapshot", "RestoreSnapshot"]
    assert front.answered[-2:] == calls


async def test_a_snapshot_that_has_begun_is_not_taken_back(tmp_path: Path) -> None:
    response = slots_pb2.SaveSnapshotResponse(snapshot=a_snapshot())
    slots = ScriptedSlots(SaveSnapshot=response)
    slots.may_answer.clear()
    async with a_front(slots, tmp_path) as front:
        first = front.send("tools/call", {"name": "session.snapshot", "arguments": {}})
        await slots.has_begun.wait()
        front.cancel(first)
        slots.may_answer.set()
        await content(front, "session.snapshot")
    assert len(slots.asked) == 2
    assert first not in front.answered
