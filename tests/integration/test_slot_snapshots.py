"""Snapshots by a slots service with a real llama-server that stays up: saved, listed, removed."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from muniment.v1 import slots_pb2
from tests.support.homes import a_folder
from tests.support.llama.models import TINY, ModelFiles
from tests.support.llama.process import LlamaServer
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_process import SlotsCaller, a_slots_home, file_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAIL_TOKENS = 40

_sessions = itertools.count(1)


@dataclass(frozen=True)
class Pair:
    """A server, and a caller of the service beside it."""

    server: LlamaServer
    caller: SlotsCaller


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(model_files: ModelFiles) -> AsyncIterator[Pair]:
    with ExitStack() as stack:
        home, folder = stack.enter_context(a_slots_home()), stack.enter_context(a_folder())
        server = stack.enter_context(LlamaServer(model_files.of(TINY), folder))
        async with home.serving(server, snapshots_keep="2") as caller:
            yield Pair(server, caller)


@pytest.fixture
def server(pair: Pair) -> LlamaServer:
    return pair.server


@pytest.fixture
def caller(pair: Pair) -> SlotsCaller:
    """A caller in a session of its own."""
    return pair.caller.of_session(f"session-{next(_sessions)}")


async def test_snapshot_says_what_it_is_of(server: LlamaServer, caller: SlotsCaller) -> None:
    turn = Conversation(server, slot=1).send()
    saved = (await caller.on(1).save()).snapshot
    (listed,) = await caller.snapshots()
    assert listed == saved
    assert (saved.slot_id, saved.session_id) == (1, caller.context.session_id)
    assert saved.project_id == caller.context.project_id
    assert saved.model == (await caller.server()).model
    assert saved.kv_type == "f16"
    assert saved.tokens >= turn.prompt_tokens
    assert saved.chain_head
    path = file_of(saved)
    assert path.is_absolute()
    assert path.stat().st_size == saved.size_bytes


async def test_snapshot_goes_into_another_slot_by_path_name_and_id(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    talk = Conversation(server)
    talk.send()
    saved = (await caller.save()).snapshot
    for name in (saved.file_path, saved.file_name, saved.snapshot_id):
        server.complete("something else", 1)
        await caller.on(1).restore(name)
        assert talk.go_on(slot=1).evaluated_tokens <= 3 * TAIL_TOKENS


async def test_slot_that_was_used_since_is_no_longer_known(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    Conversation(server).send()
    await caller.save()
    assert (await caller.slots())[0].content.basis == slots_pb2.CONTENT_BASIS_CONFIRMED
    server.complete("something else altogether")
    assert (await caller.slots())[0].content.basis == slots_pb2.CONTENT_BASIS_NOT_KNOWN


async def test_deleted_snapshot_and_its_file_are_gone(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    Conversation(server).send()
    saved = (await caller.save()).snapshot
    assert (await caller.delete(saved.snapshot_id)).file_removed
    assert not await caller.snapshots()
    assert not file_of(saved).exists()
    await refused(caller.restore(saved.file_path), "SNAPSHOT_UNKNOWN")
    await refused(caller.delete(saved.snapshot_id), "SNAPSHOT_UNKNOWN")


async def test_only_so_many_of_a_sessions_slot_are_kept(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    talk = Conversation(server)
    talk.send()
    elsewhere = (await caller.of_session("elsewhere").save()).snapshot
    answers = []
    for _ in range(3):
        talk.go_on()
        answers.append(await caller.save())
    ids = [one.snapshot.snapshot_id for one in answers]
    assert [one.snapshot_id for one in await caller.snapshots()] == [ids[2], ids[1]]
    assert [list(one.removed_snapshot_ids) for one in answers] == [[], [], [ids[0]]]
    assert not file_of(answers[0].snapshot).exists()
    assert file_of(elsewhere).exists()


async def test_same_key_saves_once(server: LlamaServer, caller: SlotsCaller) -> None:
    Conversation(server).send()
    first = await caller.save(key="once")
    assert (await caller.save(key="once")).snapshot == first.snapshot
    assert len(await caller.snapshots()) == 1


async def test_slot_that_holds_nothing_is_not_saved(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    server.ask("POST", "/slots/1?action=erase")
    before = len(await caller.all_snapshots())
    await refused(caller.on(1).save(), "SLOT_EMPTY")
    assert len(await caller.all_snapshots()) == before


async def test_conversation_is_counted_as_its_template_writes_it(
    server: LlamaServer, caller: SlotsCaller
) -> None:
    messages = [{"role": "user", "content": "hello <s> there"}]
    written = await caller.template(json.dumps(messages))
    assert written.prompt == "[user] hello <s> there\n[assistant] "
    server.ask("POST", "/slots/1?action=erase")
    assert written.count == server.complete(written.prompt, 1)["timings"]["prompt_n"]
    assert written.tokenizer == (await caller.count(["anything"])).tokenizer
