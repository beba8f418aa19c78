"""An inference server that is away, cannot, or is another: said clearly, and nothing is harmed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muniment.kit.errors import (
    InvalidArgumentError,
    LimitError,
    PreconditionError,
)
from muniment.v1 import slots_pb2
from tests.support.llama.models import FOREIGN, TINY, ModelFiles
from tests.support.llama.process import LlamaServer, StartLlama
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_desk import Desk
from tests.support.slots_process import SlotsCaller, SlotsHome
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

READY = slots_pb2.SERVER_CONDITION_READY


async def works(caller: SlotsCaller, server: LlamaServer) -> None:
    """Save, restore, count and list as if nothing had been."""
    Conversation(server, slot=1).send()
    saved = (await caller.on(1).save()).snapshot
    await caller.on(1).restore(saved.file_path)
    assert (await caller.count(["one two"])).exact
    assert saved.snapshot_id in [one.snapshot_id for one in await caller.snapshots()]
    assert (await caller.server()).condition == READY


async def test_server_that_is_not_there(start_llama: StartLlama, slots_home: SlotsHome) -> None:
    server = start_llama()
    async with slots_home.serving(server) as caller:
        server.kill()
        found = await caller.server()
        assert found.condition == slots_pb2.SERVER_CONDITION_UNREACHABLE
        assert found.detail
        assert found.fix
        assert not found.HasField("model")
        for call in (caller.slots(), caller.save(), caller.count(["a"]), caller.template("[]")):
            await refused(call, "LLAMA_UNREACHABLE", fix="llama_url")
        counted = await caller.count(["one two three"], exact=False)
        assert not counted.exact
        assert counted.counts[0] > 0
        assert counted.note
        assert not await caller.snapshots()
        server.restart()
        await works(caller, server)


async def test_server_that_went_is_remembered(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server = start_llama()
    async with slots_home.serving(server) as caller:
        ready = await caller.server()
        server.kill()
        found = await caller.server()
    assert found.condition == slots_pb2.SERVER_CONDITION_UNREACHABLE
    assert found.model == ready.model
    assert found.ready_at == ready.ready_at


async def test_no_server_is_wanted(slots_home: SlotsHome) -> None:
    async with slots_home.serving(backend="none") as caller:
        assert not await caller.servers()
        await refused(caller.save(), "LLAMA_NONE")
        assert not (await caller.count(["a"], exact=False)).exact


async def test_server_that_loads(desk: Desk) -> None:
    server = desk.serve(held=True)
    found = await desk.caller.server()
    assert found.condition == slots_pb2.SERVER_CONDITION_LOADING
    for call in (desk.caller.slots(), desk.caller.save(), desk.caller.count(["a"])):
        await refused(call, "LLAMA_LOADING")
    assert not (await desk.caller.count(["a"], exact=False)).exact
    server.let_load()
    await works(desk.caller, server)


async def test_server_that_restarts_while_it_saves(desk: Desk) -> None:
    server = desk.serve()
    talk = Conversation(server)
    talk.send()
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def pause() -> None:
        server.pause()
        loop.call_soon_threadsafe(reached.set)

    desk.gateway.before["action=save"] = pause
    saving = asyncio.ensure_future(desk.caller.save())
    await asyncio.wait_for(reached.wait(), 20)
    await asyncio.to_thread(server.restart)
    await refused(saving, "LLAMA_DROPPED")
    assert not await desk.caller.snapshots()
    talk.send()
    await works(desk.caller, server)
    assert len(await desk.caller.snapshots()) == 1


async def test_server_that_hangs_while_it_saves(desk: Desk) -> None:
    """Others are served meanwhile, and it comes to an end once the server goes on."""
    server = desk.serve()
    Conversation(server).send()
    desk.gateway.before["action=save"] = server.pause
    saving = asyncio.ensure_future(desk.caller.save())

    async def asked() -> bool:
        return desk.gateway.was_asked("action=save")

    await eventually(asked, "the save is asked for")
    assert not await asyncio.wait_for(desk.caller.snapshots(), 5)
    server.resume()
    assert (await saving).snapshot.tokens > 0
    await works(desk.caller, server)


async def test_answer_to_a_save_is_lost(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server).send()
    desk.gateway.dropped.add("action=save")
    first = await desk.caller.save(key="lost")
    assert (await desk.caller.save(key="lost")).snapshot == first.snapshot
    assert len(await desk.caller.snapshots()) == 1
    assert not litter(server)


async def test_connection_that_drops_after_a_stream(desk: Desk) -> None:
    server = desk.serve()
    await works(desk.caller, server)
    for path in ("/tokenize", "/slots", "/props", "action=restore"):
        server.stream("tell me more", slot=0)
        desk.gateway.dropped.add(path)
        await works(desk.caller, server)
    assert not desk.gateway.dropped


async def test_server_without_a_save_folder(desk: Desk) -> None:
    server = desk.serve(saves=False)
    Conversation(server).send()
    await refused(desk.caller.save(), "LLAMA_NOT_SUPPORTED", fix="--slot-save-path")
    assert not await desk.caller.snapshots()
    can = {one.kind: one for one in (await desk.caller.server()).capabilities}
    for kind in (slots_pb2.CAPABILITY_KIND_SAVE, slots_pb2.CAPABILITY_KIND_RESTORE):
        assert can[kind].standing == slots_pb2.STANDING_NO
        assert "--slot-save-path" in can[kind].fix
    server.restart(saves=True)
    await works(desk.caller, server)


async def test_restore_by_a_server_without_a_save_folder(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server).send()
    saved = (await desk.caller.save()).snapshot
    server.restart(saves=False)
    await refused(
        desk.caller.restore(saved.file_path), "LLAMA_NOT_SUPPORTED", fix="--slot-save-path"
    )


async def test_server_that_lists_no_slots(desk: Desk) -> None:
    server = desk.serve(TINY, "--no-slots")
    await refused(desk.caller.slots(), "LLAMA_NOT_SUPPORTED", fix="--slots")
    await works(desk.caller, server)


async def test_disk_that_is_full(desk: Desk) -> None:
    server = desk.serve(TINY, "--max-file-bytes", "100000")
    Conversation(server).send()
    with pytest.raises(LimitError) as caught:
        await desk.caller.save()
    assert caught.value.fix
    assert not await desk.caller.snapshots()
    assert not litter(server)
    server.restart(arguments=())
    await works(desk.caller, server)


async def test_wrong_key(start_llama: StartLlama, slots_home: SlotsHome, tmp_path: Path) -> None:
    right, ours = tmp_path / "right", tmp_path / "ours"
    right.write_text("hush\n")
    ours.write_text("loud\n")
    server = start_llama(TINY, "--api-key-file", str(right))
    async with slots_home.serving(server, llama_key_file=str(ours)) as caller:
        found = await caller.server()
        assert found.condition == slots_pb2.SERVER_CONDITION_KEY_REFUSED
        error = await refused(caller.save(), "LLAMA_KEY_REFUSED", fix="llama_key_file")
        assert "loud" not in f"{error}{found}"
        assert not (await caller.count(["a"], exact=False)).exact
        # It is read anew each time.
        ours.write_text("hush\n")
        assert (await caller.server()).condition == READY
        assert (await caller.count(["a"])).exact


@pytest.mark.parametrize("slot", [2, 9, 2**31])
async def test_slot_that_the_server_does_not_have(desk: Desk, slot: int) -> None:
    server = desk.serve()
    Conversation(server).send()
    saved = (await desk.caller.save()).snapshot
    desk.gateway.asked.clear()
    elsewhere = desk.caller.on(slot)
    for call in (elsewhere.save(), elsewhere.restore(saved.file_path)):
        error = await refused(call, "SLOT_UNKNOWN")
        assert isinstance(error, InvalidArgumentError)
        assert error.field == "slot_id"
    assert not desk.gateway.was_asked("action=save")
    assert len(await desk.caller.snapshots()) == 1


async def test_another_model_on_the_same_port(desk: Desk, model_files: ModelFiles) -> None:
    server = desk.serve()
    texts = ["where the serving model's own tokenizer counts"] * 2
    Conversation(server).send()
    saved = (await desk.caller.save()).snapshot
    before, counted = await desk.caller.server(), await desk.caller.count(texts)
    server.restart(model=model_files.of(FOREIGN))
    desk.gateway.asked.clear()
    error = await refused(desk.caller.restore(saved.file_path), "MODEL_OTHER")
    assert isinstance(error, PreconditionError)
    assert not desk.gateway.was_asked(saved.file_name)
    after, recounted = await desk.caller.server(), await desk.caller.count(texts)
    assert after.model.fingerprint != before.model.fingerprint
    assert recounted.tokenizer != counted.tokenizer
    assert list(recounted.counts) == [len(server.tokens(text)) for text in texts]
    assert (await desk.caller.slots())[0].content.basis == slots_pb2.CONTENT_BASIS_NOT_KNOWN
    assert len(await desk.caller.snapshots()) == 1
    await works(desk.caller, server)
    server.restart(model=model_files.of(TINY))
    assert (await desk.caller.restore(saved.file_path)).restored_tokens == saved.tokens


async def test_smaller_context(desk: Desk) -> None:
    server = desk.serve()
    Conversation(server, first_lines=60).send()
    saved = (await desk.caller.save()).snapshot
    assert saved.tokens > 1024
    server.restart(slot_tokens=1024)
    desk.gateway.asked.clear()
    error = await refused(desk.caller.restore(saved.file_path), "CONTEXT_TOO_SMALL")
    assert "1024" in str(error) or "1,024" in str(error)
    assert not desk.gateway.was_asked(saved.file_name)
    await works_small(desk.caller, server)


async def works_small(caller: SlotsCaller, server: LlamaServer) -> None:
    """As `works`, with less room."""
    Conversation(server, slot=1, first_lines=5).send()
    await caller.on(1).save()


def litter(server: LlamaServer) -> list[Path]:
    """What is left in the server's folder; the home keeps its snapshots in another one."""
    return list(server.save_folder.iterdir())
