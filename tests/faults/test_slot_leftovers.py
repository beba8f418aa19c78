"""Files of snapshots that cannot be removed or sealed, lie elsewhere, or appear late."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from muniment.kit.paths import Home
from tests.support.llama.gateway import Gateway
from tests.support.llama.process import LlamaServer, StartLlama
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_process import SlotsHome, file_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN = b"plain"


@pytest.fixture
def server(start_llama: StartLlama) -> LlamaServer:
    """One with something in its first slot."""
    server = start_llama()
    Conversation(server).send()
    return server


def block(path: Path) -> None:
    """Put something there that cannot be removed like a file."""
    path.unlink(missing_ok=True)
    path.mkdir()


async def test_file_that_cannot_be_removed_is_told_and_tried_again(
    server: LlamaServer, slots_home: SlotsHome
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
        path = file_of(saved)
        block(path)
        for _ in range(2):
            deleted = await caller.delete(saved.snapshot_id)
            assert not deleted.file_removed
            assert str(path) in deleted.note
        assert not await caller.all_snapshots()
    path.rmdir()
    path.write_bytes(PLAIN)
    async with slots_home.serving(server) as caller:
        assert not path.exists()
        await refused(caller.delete(saved.snapshot_id), "SNAPSHOT_UNKNOWN")


async def test_save_says_what_stays_of_those_that_had_to_go(
    server: LlamaServer, slots_home: SlotsHome
) -> None:
    async with slots_home.serving(server, snapshots_keep="1") as caller:
        first = (await caller.save()).snapshot
        block(file_of(first))
        answer = await caller.save()
        assert list(answer.removed_snapshot_ids) == [first.snapshot_id]
        assert any(first.file_path in note for note in answer.notes)
        assert list(await caller.all_snapshots()) == [answer.snapshot]


async def test_files_of_a_former_folder_are_found(
    server: LlamaServer, slots_home: SlotsHome, tmp_path: Path
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
    async with slots_home.serving(server, snapshot_folder=str(tmp_path)) as caller:
        assert not (await caller.all_snapshots())[0].HasField("damage")
        for name in (saved.file_path, saved.snapshot_id):
            assert (await caller.restore(name)).restored_tokens == saved.tokens
        assert (await caller.delete(saved.snapshot_id)).file_removed
        assert not file_of(saved).exists()


@pytest.mark.parametrize("is_sealed", [False, True])
async def test_files_of_a_former_folder_that_is_the_servers_stay(
    server: LlamaServer, slots_home: SlotsHome, is_sealed: bool
) -> None:
    if is_sealed:
        slots_home.seal()
    async with slots_home.serving(server, snapshot_folder=str(server.save_folder)) as caller:
        saved = (await caller.save()).snapshot
    for _ in range(2):
        async with slots_home.serving(server) as caller:
            assert file_of(saved).exists()
            assert not (await caller.all_snapshots())[0].HasField("damage")
            assert (await caller.restore(saved.snapshot_id)).restored_tokens == saved.tokens


async def test_folder_that_is_not_there_any_more(
    server: LlamaServer, slots_home: SlotsHome, tmp_path: Path
) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    async with slots_home.serving(server, snapshot_folder=str(before)) as caller:
        saved = (await caller.save()).snapshot
    before.rename(tmp_path / "elsewhere")
    async with slots_home.serving(server, snapshot_folder=str(now)) as caller:
        deleted = await caller.delete(saved.snapshot_id)
        assert not deleted.file_removed
        assert str(before) in deleted.note


async def test_files_of_the_home_that_a_copy_was_made_of_stay(
    server: LlamaServer, slots_home: SlotsHome
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
    # Beside the first, where its key is.
    copy = SlotsHome(Home(slots_home.home.path.with_name("copy")))
    shutil.copytree(slots_home.home.path, copy.home.path)
    (copy.snapshot_folder / saved.file_name).unlink()
    async with copy.serving(server) as caller:
        assert (await caller.all_snapshots())[0].damage == "is gone"
        await caller.delete(saved.snapshot_id)
        assert file_of(saved).exists()


@pytest.mark.parametrize(
    "answer",
    [(504, b"gave up"), (502, b""), (404, b"{}"), (200, b"<html>")],
    ids=lambda one: one[0],
)
async def test_file_that_a_server_finishes_after_a_gateway_gave_up(
    server: LlamaServer, slots_home: SlotsHome, answer: tuple[int, bytes]
) -> None:
    slots_home.seal()
    with Gateway(server) as gateway:
        async with slots_home.serving(server, llama_url=gateway.url) as caller:
            await caller.server()
            gateway.answered["action=save"] = answer
            await refused(caller.save(), "LLAMA_NOT_UNDERSTOOD")
            (asked,) = (one for one in gateway.asked if "action=save" in one)
            request = json.loads(asked[asked.index("{") :])
            assert server.ask("POST", "/slots/0?action=save", request).is_success
            (late,) = server.save_folder.iterdir()
            assert not await caller.all_snapshots()
        async with slots_home.serving(server, llama_url=gateway.url):
            assert not late.exists()


async def test_files_of_a_former_folder_are_sealed_where_they_lie(
    server: LlamaServer, slots_home: SlotsHome, tmp_path: Path
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
    slots_home.run("key", "create")
    async with slots_home.serving(server, snapshot_folder=str(tmp_path)) as caller:
        (listed,) = await caller.all_snapshots()
        assert listed.is_sealed
        assert list(slots_home.snapshot_folder.iterdir()) == [file_of(listed)]
        restored = await caller.restore(saved.snapshot_id)
        assert restored.restored_tokens == saved.tokens


async def test_plain_file_that_was_changed_is_not_sealed_and_stays(
    server: LlamaServer, slots_home: SlotsHome
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
    content = bytearray(file_of(saved).read_bytes())
    content[-1] ^= 1
    file_of(saved).write_bytes(content)
    slots_home.run("key", "create")
    async with slots_home.serving(server) as caller:
        (listed,) = await caller.all_snapshots()
        assert not listed.is_sealed
        assert "in plain" in listed.damage
        assert file_of(saved).read_bytes() == content
        assert "is not sealed" in slots_home.log_text()


async def test_service_starts_though_a_file_cannot_be_sealed(
    server: LlamaServer, slots_home: SlotsHome
) -> None:
    async with slots_home.serving(server) as caller:
        saved = (await caller.save()).snapshot
    sealed = file_of(saved).with_name(f"{saved.file_name}.sealed")
    block(sealed)
    slots_home.run("key", "create")
    async with slots_home.serving(server) as caller:
        assert not (await caller.all_snapshots())[0].is_sealed
        assert file_of(saved).exists()
    sealed.rmdir()
    async with slots_home.serving(server) as caller:
        assert (await caller.all_snapshots())[0].is_sealed
        assert not file_of(saved).exists()
