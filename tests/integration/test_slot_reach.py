"""Save files that stay with their server: on this machine, too, if nobody tells where it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.v1 import slots_pb2
from tests.support.llama.process import StartLlama
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_process import SlotsHome

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAR = slots_pb2.SNAPSHOT_PLACE_SERVER


@pytest.mark.parametrize("named", ["", "llama/slots", "~nobody-of-this-name/slots", "{missing}"])
async def test_servers_folder_does_not_fill(
    start_llama: StartLlama, slots_home: SlotsHome, tmp_path: Path, named: str
) -> None:
    server = start_llama()
    talk = Conversation(server)
    named = named.format(missing=tmp_path / "missing")
    talk.send()
    async with slots_home.serving(
        llama_url=server.url, llama_save_folder=named, snapshots_keep="1"
    ) as caller:
        answers = [await caller.save() for _ in range(4)]
        (listed,) = await caller.all_snapshots()
        assert listed.place == FAR
        assert len(list(server.save_folder.iterdir())) == 2
        assert any("llama_save_folder" in note for note in answers[0].notes)
        assert any(answers[0].snapshot.snapshot_id in note for note in answers[1].notes)
        server.restart()
        await caller.restore(listed.snapshot_id)
        assert talk.go_on().reused_tokens > 0
        deleted = await caller.delete(listed.snapshot_id)
        assert not deleted.file_removed
        assert "out of reach" in deleted.note


async def test_files_are_removed_once_their_folder_is_named(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server = start_llama()
    Conversation(server).send()
    async with slots_home.serving(llama_url=server.url) as caller:
        saved = (await caller.save()).snapshot
    async with slots_home.serving(server) as caller:
        deleted = await caller.delete(saved.snapshot_id)
        assert deleted.file_removed
        assert not deleted.HasField("note")
        assert not list(server.save_folder.iterdir())


@pytest.mark.parametrize("named", ["", "llama/slots", "~nobody-of-this-name/slots", "{missing}"])
async def test_sealed_home_lets_no_server_write_what_it_cannot_seal(
    start_llama: StartLlama, slots_home: SlotsHome, tmp_path: Path, named: str
) -> None:
    slots_home.seal()
    server = start_llama()
    Conversation(server).send()
    named = named.format(missing=tmp_path / "missing")
    async with slots_home.serving(llama_url=server.url, llama_save_folder=named) as caller:
        await refused(caller.save(), "SNAPSHOT_CANNOT_BE_SEALED", fix="`llama_save_folder`")
        assert not list(server.save_folder.iterdir())
        assert not await caller.all_snapshots()


async def test_sealed_home_says_what_lies_in_plain_and_how_to_mend_it(
    start_llama: StartLlama, slots_home: SlotsHome, tmp_path: Path
) -> None:
    """That the folder is the wrong one is seen only when there is no file in it."""
    slots_home.seal()
    server = start_llama()
    Conversation(server).send()
    async with slots_home.serving(server, llama_save_folder=str(tmp_path)) as caller:
        answer = await caller.save()
        (plain,) = server.save_folder.iterdir()
        (note,) = (one for one in answer.notes if plain.name in one)
        assert "in plain" in note
        assert "`llama_save_folder`" in note
        assert not answer.snapshot.is_sealed
        assert "in plain" in (await caller.all_snapshots())[0].damage
        again = "slots delete " + answer.snapshot.snapshot_id
        await refused(caller.save(), "SNAPSHOT_CANNOT_BE_SEALED", fix=again)
        assert list(server.save_folder.iterdir()) == [plain]
    async with slots_home.serving(server) as caller:
        assert (await caller.delete(answer.snapshot.snapshot_id)).file_removed
        assert (await caller.save()).snapshot.is_sealed
        assert not list(server.save_folder.iterdir())


async def test_file_of_one_server_is_not_asked_of_another(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server, other = start_llama(), start_llama()
    Conversation(server).send()
    servers = json.dumps({"other": {"url": other.url}})
    async with slots_home.serving(llama_url=server.url, servers=servers) as caller:
        saved = (await caller.save()).snapshot
        call = caller.restore(saved.snapshot_id, server="other")
        await refused(call, "SERVER_OTHER", fix="--server main")
        await caller.restore(saved.snapshot_id, server="main")
