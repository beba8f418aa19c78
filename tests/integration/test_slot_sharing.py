"""Snapshots that several use at once, and servers that go away when all is done."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support.llama.gateway import Gateway
from tests.support.llama.process import StartLlama
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_desk import Desk
from tests.support.slots_process import SlotsHome

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOTS, ROUNDS = 4, 6

_HELD_SECONDS = 20.0
_STARTED_SECONDS = 0.5
"""Within which a call that waits for nothing would have ended."""


@pytest.mark.parametrize("is_sealed", [False, True])
async def test_one_snapshot_goes_into_all_slots_at_once(
    start_llama: StartLlama, slots_home: SlotsHome, is_sealed: bool
) -> None:
    if is_sealed:
        slots_home.seal()
    server = start_llama(slots=SLOTS)
    Conversation(server).send()
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
        for _ in range(ROUNDS):
            calls = (caller.on(slot).restore(saved.snapshot_id) for slot in range(SLOTS))
            restored = await asyncio.gather(*calls)
            assert {one.restored_tokens for one in restored} == {saved.tokens}
        assert not list(server.save_folder.iterdir())


async def test_a_snapshot_is_removed_after_its_restore(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    """And whoever comes after that is told that it is gone."""
    reached, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        loop.call_soon_threadsafe(reached.set)
        go_on.wait(_HELD_SECONDS)

    server = start_llama()
    Conversation(server).send()
    with Gateway(server) as gateway:
        async with slots_home.serving(server, llama_url=gateway.url) as caller:
            saved = (await caller.save()).snapshot
            gateway.before["action=restore"] = hold
            restoring = asyncio.ensure_future(caller.restore(saved.snapshot_id))
            try:
                await asyncio.wait_for(reached.wait(), _HELD_SECONDS)
                deleting = asyncio.ensure_future(caller.delete(saved.snapshot_id))
                ended, _ = await asyncio.wait({deleting}, timeout=_STARTED_SECONDS)
                late = asyncio.ensure_future(caller.on(1).restore(saved.snapshot_id))
            finally:
                go_on.set()
            assert not ended
            assert (await restoring).restored_tokens == saved.tokens
            assert (await deleting).file_removed
            await refused(late, "SNAPSHOT_UNKNOWN")
            assert not list(server.save_folder.iterdir())
            assert not list(slots_home.snapshot_folder.iterdir())


async def test_what_was_saved_is_told_again_while_the_server_is_away(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server).send()
    first = await desk.caller.save(key="away")
    server.kill()
    again = await desk.caller.save(key="away")
    assert again.snapshot == first.snapshot


async def test_server_that_dies_after_it_saved(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server).send()

    def kill_later() -> None:
        desk.gateway.before["/slots"] = server.kill

    desk.gateway.before["action=save"] = kill_later
    saved = (await desk.caller.save()).snapshot
    assert not server.is_alive
    assert await desk.caller.snapshots() == [saved]


async def test_restored_slot_is_saved_before_it_was_used(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server).send()
    saved = (await desk.caller.save()).snapshot
    server.restart()
    await desk.caller.restore(saved.snapshot_id)
    assert not (await desk.caller.slots())[0].HasField("prompt_tokens")
    assert (await desk.caller.save()).snapshot.tokens == saved.tokens


async def test_slot_that_was_never_used_is_not_saved(desk: Desk) -> None:
    """Here the server tells only in its answer that the slot is empty."""
    desk.serve()
    await refused(desk.caller.save(), "SLOT_EMPTY")
    assert not list(desk.save_folder.iterdir())
    assert not await desk.caller.snapshots()
