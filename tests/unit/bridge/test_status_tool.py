"""sakur4.status: the inference server in every condition, and what could not be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muniment.kit.counting import TOKENIZER
from muniment.kit.errors import LimitError, PreconditionError
from muniment.memory.service import MemoryServicer
from muniment.v1 import slots_pb2
from tests.support.code_service import a_code
from tests.support.homes import a_home
from tests.support.inprocess import Front, a_worker, content
from tests.support.memory import a_memory
from tests.support.scripted_slots import ScriptedSlots
from tests.support.slots import a_slots, serving_slots

YES, NO = slots_pb2.STANDING_YES, slots_pb2.STANDING_NO
SERVER_FIELDS = {"backend", "capabilities", "context_window", "slots"}


@asynccontextmanager
async def a_front(slots: ScriptedSlots, cwd: Path) -> AsyncIterator[Front]:
    """A front whose slots service says what the test wants, beside a real memory."""
    with a_home() as home:
        async with (
            a_memory(home),
            serving_slots(home, slots),
            a_code(home),
            a_worker(home) as worker,
        ):
            yield Front(worker, cwd)


async def status_with(slots: ScriptedSlots, cwd: Path) -> dict[str, Any]:
    async with a_front(slots, cwd) as front:
        told = await content(front, "sakur4.status")
    assert told["episodes"] == 0
    assert not set(told["could_not_tell"]) & told.keys()
    return told


def a_server(
    condition: slots_pb2.ServerCondition.ValueType = slots_pb2.SERVER_CONDITION_READY,
    *,
    lists_slots: slots_pb2.Standing.ValueType = YES,
) -> slots_pb2.Server:
    """The usual server, seen before."""
    server = slots_pb2.Server(
        name="main", url="http://127.0.0.1:9", is_usual=True, condition=condition
    )
    server.model.name = "tiny"
    server.model.slot_context_tokens = 2048
    server.model.tokenizer = "llama:0123456789ab"
    for kind, standing in (
        (slots_pb2.CAPABILITY_KIND_SLOTS, lists_slots),
        (slots_pb2.CAPABILITY_KIND_TOKENIZE, YES),
        (slots_pb2.CAPABILITY_KIND_PREFIX_REUSE, YES),
        (slots_pb2.CAPABILITY_KIND_RESTORE_REUSE, YES),
    ):
        server.capabilities.add(kind=kind, standing=standing)
    return server


def answers(*servers: slots_pb2.Server, **more: Any) -> ScriptedSlots:
    return ScriptedSlots(ListServers=slots_pb2.ListServersResponse(servers=servers), **more)


async def test_a_ready_server_is_told_with_its_slots(tmp_path: Path) -> None:
    listed = slots_pb2.ListSlotsResponse(server="main")
    mine = listed.slots.add(slot_id=0, context_tokens=2048, prompt_tokens=736)
    mine.content.basis, mine.content.tokens = slots_pb2.CONTENT_BASIS_CONFIRMED, 736
    other = listed.slots.add(slot_id=1, context_tokens=2048, is_busy=True, session_id="s-other")
    other.content.basis = slots_pb2.CONTENT_BASIS_NOT_KNOWN
    server = a_server()
    server.restore_worth.add(prompt_tokens=750, reused_tokens=735)
    slots = answers(server, ListSlots=listed)
    async with a_front(slots, tmp_path) as front:
        mine.session_id = (await content(front, "sakur4.status"))["session_id"]
        told = await content(front, "sakur4.status")
    assert told["backend"] == "main at http://127.0.0.1:9"
    assert told["backend_note"] == "main is ready; serves tiny"
    assert told["capabilities"] == "slots+tokenize+prefix_reuse+restore_reuse"
    assert told["cache_coherence"].startswith("can rewind anywhere")
    assert told["restore_worth"].startswith("735 of the next prompt's 750 tokens")
    assert told["context_window"] == 2048
    assert told["tokenizer"] == "llama:0123456789ab"
    assert told["slots"] == [
        "0: idle for this session; 736 of 2048 tokens; confirmed: 736 tokens",
        "1: busy for another session; content not known",
    ]
    assert told["could_not_tell"] == []
    assert "failure" not in told
    # Who asks how a server fares names no slot.
    assert {context.session_id for _, _, context in slots.asked} == {""}


async def test_many_slots_are_counted(tmp_path: Path) -> None:
    listed = slots_pb2.ListSlotsResponse()
    for number in range(20):
        listed.slots.add(slot_id=number, is_busy=number > 17)
    told = await status_with(answers(a_server(), ListSlots=listed), tmp_path)
    assert len(told["slots"]) == 17
    assert told["slots"][-1] == "4 more, 2 of them busy"


async def test_other_servers_are_counted(tmp_path: Path) -> None:
    other = slots_pb2.Server(name="second")
    slots = answers(a_server(), other, ListSlots=slots_pb2.ListSlotsResponse())
    told = await status_with(slots, tmp_path)
    assert "1 more configured, see `muniment slots show`" in told["backend_note"]


@pytest.mark.parametrize(
    "condition",
    [
        slots_pb2.SERVER_CONDITION_UNREACHABLE,
        slots_pb2.SERVER_CONDITION_LOADING,
        slots_pb2.SERVER_CONDITION_KEY_REFUSED,
        slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD,
    ],
)
async def test_a_server_that_is_not_ready_is_told_with_cause_and_cure(
    tmp_path: Path, condition: slots_pb2.ServerCondition.ValueType
) -> None:
    server = a_server(condition)
    server.detail, server.fix = "it cannot be asked", "mend it"
    slots = answers(server)
    told = await status_with(slots, tmp_path)
    assert told["backend"] == "main at http://127.0.0.1:9"
    assert told["backend_note"].startswith("it cannot be asked; mend it; serves tiny")
    assert told["cache_coherence"].startswith("unavailable")
    # What was known of it before is still told, and whose tokenizer counts now.
    assert told["context_window"] == 2048
    assert told["tokenizer"] == TOKENIZER
    assert told["could_not_tell"] == ["slots"]
    assert [name for name, _, _ in slots.asked] == ["ListServers"]


async def test_a_server_that_was_never_ready_leaves_its_fields_out(tmp_path: Path) -> None:
    server = slots_pb2.Server(
        name="main",
        url="http://127.0.0.1:9",
        is_usual=True,
        condition=slots_pb2.SERVER_CONDITION_UNREACHABLE,
    )
    told = await status_with(answers(server), tmp_path)
    assert set(told["could_not_tell"]) == SERVER_FIELDS - {"backend"}


async def test_a_server_that_keeps_its_slots_to_itself_lacks_nothing(tmp_path: Path) -> None:
    slots = answers(a_server(lists_slots=NO))
    told = await status_with(slots, tmp_path)
    assert told["could_not_tell"] == []
    assert "not slots" in told["capabilities"]
    assert [name for name, _, _ in slots.asked] == ["ListServers"]


async def test_slots_that_cannot_be_read_are_named_with_the_reason(tmp_path: Path) -> None:
    failure = PreconditionError("it went away", reason="LLAMA_DROPPED", fix="call again")
    told = await status_with(answers(a_server(), ListSlots=failure), tmp_path)
    assert told["could_not_tell"] == ["slots"]
    assert told["failure"] == "it went away; call again"
    assert told["context_window"] == 2048


async def test_without_a_server_there_is_none(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_memory(home), a_slots(home), a_code(home), a_worker(home) as worker:
            told = await content(Front(worker, tmp_path), "sakur4.status")
    assert (told["backend"], told["capabilities"]) == ("none", "none")
    assert told["backend_note"].startswith("no inference server: none is configured")
    assert told["cache_coherence"].startswith("unavailable: without an inference server")
    assert told["tokenizer"] == TOKENIZER
    assert told["could_not_tell"] == []
    assert not {"context_window", "slots", "restore_worth", "failure"} & told.keys()


async def test_a_slots_service_that_is_away_leaves_the_counts_alone(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_memory(home), a_code(home), a_worker(home) as worker:
            front = Front(worker, tmp_path)
            await content(front, "memory.pin", content="Use tabs.")
            told = await content(front, "sakur4.status")
    assert (told["anchors"], told["project_anchors"]) == (1, 1)
    assert set(told["could_not_tell"]) == SERVER_FIELDS
    assert "slots service did not come back" in told["failure"]
    assert told["backend_note"].startswith("could not tell: ")
    assert told["cache_coherence"].startswith("not known")


async def test_services_are_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = answers()
    slots.may_answer.clear()

    async def counts_once_slots_are_asked(*_: object) -> None:
        async with asyncio.timeout(10):
            await slots.has_begun.wait()
        slots.may_answer.set()
        raise LimitError("the disk is full", reason="STORE_WRITE_FAILED")

    monkeypatch.setattr(MemoryServicer, "GetStats", counts_once_slots_are_asked)
    async with a_front(slots, tmp_path) as front:
        told = await content(front, "sakur4.status")
    assert told["backend"] == "none"
    assert told["failure"] == "the disk is full"


async def test_the_resource_tells_the_same(tmp_path: Path) -> None:
    listed = slots_pb2.ListSlotsResponse()
    listed.slots.add(slot_id=0)
    async with a_front(answers(a_server(), ListSlots=listed), tmp_path) as front:
        told = await content(front, "sakur4.status")
        uri = f"sakur4://status/{told['project_id']}"
        read = (await front.ask("resources/read", {"uri": uri}))["result"]["contents"]
    lines = read[0]["text"].splitlines()
    assert f"backend: {told['backend']}" in lines
    assert "slots: 0: idle; content not known" in lines
    assert "context_window: 2048" in lines


async def test_status_tells_what_it_could_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise LimitError("the disk is full", reason="STORE_WRITE_FAILED", fix="empty it")

    monkeypatch.setattr(MemoryServicer, "GetStats", full)
    with a_home() as home:
        async with a_memory(home), a_slots(home), a_code(home), a_worker(home) as worker:
            status = await content(Front(worker, tmp_path), "sakur4.status")
    assert {"episodes", "tokenizer"} <= set(status["could_not_tell"])
    assert not set(status["could_not_tell"]) & status.keys()
    assert status["failure"] == "the disk is full; empty it"


async def test_the_files_of_the_tree_are_counted_as_they_are_indexed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): ...\n")
    async with a_front(answers(), tmp_path) as front:
        before = await content(front, "sakur4.status")
        await content(front, "code.get_repo_map", token_budget=500)
        after = await content(front, "sakur4.status")
    assert before["repo_files"] == 0
    assert "not indexed yet" in before["code_index"]
    assert after["repo_files"] == 1
    assert after["could_not_tell"] == []


async def test_a_code_service_that_is_away_leaves_the_rest_alone(tmp_path: Path) -> None:
    with a_home() as home:
        async with a_memory(home), a_slots(home), a_worker(home) as worker:
            told = await content(Front(worker, tmp_path), "sakur4.status")
    assert told["could_not_tell"] == ["repo_files", "code_index"]
    assert "code service did not come back" in told["failure"]
    assert told["episodes"] == 0
