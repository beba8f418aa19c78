"""Save files that were cut, changed, swapped or lost: the server is never asked to read them.

It would end itself over a file that was cut, and take one that was changed without a word.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from muniment.kit.errors import InvalidArgumentError, NotFoundError, TamperedError
from muniment.v1 import slots_pb2
from tests.support.homes import a_folder
from tests.support.llama.gateway import Gateway
from tests.support.llama.models import FOREIGN, TINY, ModelFiles
from tests.support.llama.process import LlamaServer
from tests.support.llama.turns import Conversation
from tests.support.refusals import refused
from tests.support.slots_process import SlotsCaller, a_slots_home, file_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

_FOREIGN_BYTES = b"\x00\x01foreign"
_ASKED = ("action=restore", "action=erase")

_sessions = itertools.count(1)


@dataclass(frozen=True)
class Place:
    """A server behind a gateway, and a caller of the service beside it."""

    server: LlamaServer
    gateway: Gateway
    caller: SlotsCaller


@dataclass(frozen=True)
class Scene:
    """A saved slot, and another one that nothing may happen to."""

    place: Place
    caller: SlotsCaller
    saved: slots_pb2.Snapshot
    bystander: Conversation

    async def requires_damage_seen(self, path: str) -> None:
        """The restore is refused, the server not asked, and nothing else is disturbed."""
        self.place.gateway.asked.clear()
        error = await refused(self.caller.restore(path), "SNAPSHOT_DAMAGED")
        assert isinstance(error, TamperedError)
        await self.requires_peace()

    async def requires_peace(self) -> None:
        """The server was not asked to restore, lives, and has the other slot as it was."""
        assert not any(map(self.place.gateway.was_asked, _ASKED))
        assert self.place.server.is_alive
        assert self.bystander.send().evaluated_tokens <= 1
        other = self.caller.on(1).of_session("bystander")
        assert (await other.save()).snapshot.tokens > 0


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["plain", "sealed"])
async def place(request: pytest.FixtureRequest, model_files: ModelFiles) -> AsyncIterator[Place]:
    with ExitStack() as stack:
        home, folder = stack.enter_context(a_slots_home()), stack.enter_context(a_folder())
        if request.param == "sealed":
            home.seal()
        server = stack.enter_context(LlamaServer(model_files.of(TINY), folder))
        gateway = stack.enter_context(Gateway(server))
        async with home.serving(server, llama_url=gateway.url) as caller:
            # What it can do is asked with a restore that it refuses; that is over, then.
            await caller.server()
            yield Place(server, gateway, caller)


@pytest_asyncio.fixture(loop_scope="module")
async def scene(place: Place) -> Scene:
    caller = place.caller.of_session(f"session-{next(_sessions)}")
    Conversation(place.server, slot=0).send()
    saved = (await caller.save()).snapshot
    bystander = Conversation(place.server, slot=1)
    bystander.send()
    return Scene(place, caller, saved, bystander)


def cut(path: Path) -> None:
    """Take the last byte away."""
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    """Take all away."""
    os.truncate(path, 0)


def flip(path: Path) -> None:
    """Change a bit in the middle."""
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


def lengthen(path: Path) -> None:
    """Add a byte."""
    path.write_bytes(path.read_bytes() + b"\0")


def replace_by_noise(path: Path) -> None:
    """Put something foreign of the same size there."""
    size = path.stat().st_size
    path.write_bytes((_FOREIGN_BYTES * (size // len(_FOREIGN_BYTES) + 1))[:size])


def remove(path: Path) -> None:
    """Take the file away."""
    path.unlink()


def replace_by_link(path: Path) -> None:
    """Put a link there, which leads to the same bytes."""
    elsewhere = path.with_name(f"elsewhere-{path.name}")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_pipe(path: Path) -> None:
    """Put something there whose reader would wait for ever."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [cut, empty, flip, lengthen, replace_by_noise, remove, replace_by_link, replace_by_pipe],
    ids=lambda damage: damage.__name__,
)
async def test_damaged_file_is_not_given_to_the_server(
    scene: Scene, damage: Callable[[Path], None]
) -> None:
    damage(file_of(scene.saved))
    await scene.requires_damage_seen(scene.saved.file_path)
    await scene.requires_damage_seen(scene.saved.snapshot_id)


async def test_damage_that_the_size_tells_is_listed(scene: Scene) -> None:
    (before,) = await scene.caller.snapshots()
    cut(file_of(scene.saved))
    (listed,) = await scene.caller.snapshots()
    assert not before.HasField("damage")
    assert listed.damage


async def test_damaged_snapshot_can_be_deleted(scene: Scene) -> None:
    flip(file_of(scene.saved))
    await scene.caller.delete(scene.saved.snapshot_id)
    assert not await scene.caller.snapshots()
    assert not file_of(scene.saved).exists()


async def test_two_snapshots_that_were_swapped(scene: Scene) -> None:
    other = (await scene.caller.on(1).save()).snapshot
    one, another = file_of(scene.saved), file_of(other)
    content = one.read_bytes()
    one.write_bytes(another.read_bytes())
    another.write_bytes(content)
    await scene.requires_damage_seen(scene.saved.file_path)


async def test_file_of_another_model_in_its_place(
    scene: Scene, model_files: ModelFiles, tmp_path: Path
) -> None:
    with LlamaServer(model_files.of(FOREIGN), tmp_path) as other:
        Conversation(other).send()
        assert other.ask("POST", "/slots/0?action=save", {"filename": "other"}).is_success
        content = (other.save_folder / "other").read_bytes()
    file_of(scene.saved).write_bytes(content)
    await scene.requires_damage_seen(scene.saved.file_path)


async def test_file_that_nobody_saved(scene: Scene) -> None:
    kept = file_of(scene.saved)
    strange = kept.with_name("strange.slot")
    strange.write_bytes(kept.read_bytes())
    scene.place.gateway.asked.clear()
    for path in (str(strange), "strange.slot", "snap_nothing"):
        error = await refused(scene.caller.restore(path), "SNAPSHOT_UNKNOWN")
        assert isinstance(error, NotFoundError)
    await scene.requires_peace()


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/hostname", "../../{name}", "..", "/", "{folder}/../{name}", "a/{name}", ""),
        *("\0", "/a\0/b", "{folder}/\0", "snap_\0"),
        *("a" * 5000, "/" + "a" * 5000 + "/b", "snap_" + "a" * 5000),
    ],
    ids=lambda path: repr(path[:20]),
)
async def test_path_outside_the_folder(scene: Scene, path: str) -> None:
    kept = file_of(scene.saved)
    scene.place.gateway.asked.clear()
    call = scene.caller.restore(path.format(name=kept.name, folder=kept.parent))
    with pytest.raises((InvalidArgumentError, NotFoundError)) as caught:
        await call
    assert caught.value.field == "path"
    assert caught.value.fix
    assert len(caught.value.message) < 500
    await scene.requires_peace()


@pytest.mark.parametrize("name", ["\0", "snap_nothing", "a" * 5000], ids=lambda name: name[:9])
async def test_deleting_what_there_is_not(scene: Scene, name: str) -> None:
    error = await refused(scene.caller.delete(name), "SNAPSHOT_UNKNOWN")
    assert error.field == "snapshot_id"


async def test_other_files_in_the_servers_folder_stay(scene: Scene) -> None:
    """And none of ours are left, whether restores went well or not."""
    theirs = scene.place.server.save_folder / "theirs"
    theirs.write_bytes(b"theirs")
    await scene.caller.restore(scene.saved.file_path)
    flip(file_of(scene.saved))
    await refused(scene.caller.restore(scene.saved.file_path), "SNAPSHOT_DAMAGED")
    assert list(scene.place.server.save_folder.iterdir()) == [theirs]
    assert theirs.read_bytes() == b"theirs"
    theirs.unlink()


@pytest.mark.parametrize("is_sealed", [False, True])
async def test_one_folder_for_the_server_and_for_us(
    model_files: ModelFiles, tmp_path: Path, is_sealed: bool
) -> None:
    """Restores work as often as wanted, and the folder has the snapshot's file only."""
    with a_slots_home() as home, LlamaServer(model_files.of(TINY), tmp_path) as server:
        if is_sealed:
            home.seal()
        async with home.serving(server, snapshot_folder=str(server.save_folder)) as caller:
            Conversation(server).send()
            saved = (await caller.save()).snapshot
            for _ in range(2):
                await caller.restore(saved.file_path)
            assert list(server.save_folder.iterdir()) == [file_of(saved)]
            assert not (await caller.snapshots())[0].HasField("damage")
