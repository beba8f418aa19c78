"""`muniment backup` and `muniment restore`: copies that are taken while agents write."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store.backup import DATA_FILE, MANIFEST_FILE
from muniment.v1 import memory_pb2
from muniment.workflows.clients import open_clients
from muniment.workflows.episodes import commit_episode
from tests.integration.house import House, Ran, a_house

pytestmark = pytest.mark.timeout(240)

_WRITERS = 8


@pytest.fixture
def house() -> Iterator[House]:
    with a_house() as house:
        house.must("up")
        yield house


@pytest.fixture
def copy(house: House) -> Path:
    """A backup of a small store."""
    house.must("commit", "--role", "user", "before the backup")
    folder = house.project / "copy"
    house.must("backup", str(folder))
    return folder


def texts(house: House) -> list[str]:
    ids = [one["episode_id"] for one in house.must("episodes")]
    return [house.run("show", one).out.decode() for one in ids]


def error_of(ran: Ran) -> dict[str, str]:
    assert ran.code == 1
    told: dict[str, str] = json.loads(ran.err)["error"]
    return told


async def write_until(
    home: Home, acknowledged: list[str], many: asyncio.Event, enough: asyncio.Event
) -> None:
    """Eight agents that commit one turn after the other."""

    async def write(writer: int) -> None:
        number = 0
        while not enough.is_set():
            text = f"turn {number} of writer {writer}"
            context = CallContext(
                project_id="proj_many",
                session_id=f"session {writer}",
                idempotency_key=f"{writer}-{number}",
                caller="test",
            )
            request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=text)
            acknowledged.append((await commit_episode(clients, context, request)).episode_id)
            number += 1
            if len(acknowledged) >= 20 * _WRITERS:
                many.set()

    async with open_clients(home) as clients:
        await asyncio.gather(*(write(writer) for writer in range(_WRITERS)))


async def back_up_meanwhile(house: House, target: Path) -> tuple[set[str], int]:
    """What was acknowledged before the backup began, and how much in all."""
    acknowledged: list[str] = []
    many, enough = asyncio.Event(), asyncio.Event()
    writing = asyncio.create_task(write_until(house.home, acknowledged, many, enough))
    async with asyncio.timeout(60):
        await many.wait()
    before = set(acknowledged)
    with ThreadPoolExecutor(1) as commands:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(commands, lambda: house.must("backup", str(target)))
    enough.set()
    await writing
    return before, len(acknowledged)


def test_all_that_was_acknowledged_before_is_in_it(house: House) -> None:
    target = house.project / "copies" / "one"
    before, in_all = asyncio.run(back_up_meanwhile(house, target))
    house.must("restore", str(target))
    assert house.must("verify-store")["findings"] == []
    project = next(one for one in house.must("projects") if one["project_id"] == "proj_many")
    assert len(before) <= project["episodes"] <= in_all

    async def found() -> set[str]:
        async with open_clients(house.home) as clients:
            request = memory_pb2.ListEpisodesRequest()
            listed = clients.memory.ListEpisodes(
                request,
                timeout=20,
                metadata=CallContext(project_id="proj_many").to_metadata(),
            )
            return {one.episode_id async for page in listed for one in page.episodes}

    assert before <= asyncio.run(found())


def test_there_and_back(house: House, copy: Path) -> None:
    manifest = json.loads((copy / MANIFEST_FILE).read_text())
    assert manifest["key_id"] == house.must("key", "show-id")["key_id"]
    house.must("commit", "--role", "user", "after the backup")
    assert texts(house) == ["before the backup", "after the backup"]
    told = house.must("restore", str(copy))
    assert told["started"]
    assert told["position"] == manifest["position"]
    assert texts(house) == ["before the backup"]
    assert [one["text"] for one in house.must("recall", "backup")["results"]] == [
        "before the backup"
    ]
    house.must("restore", told["kept"])
    assert texts(house) == ["before the backup", "after the backup"]
    assert len(list(house.home.data("memory").glob("store.before-restore-*"))) == 2


def test_a_lost_home_comes_back_with_its_key(house: House, copy: Path) -> None:
    house.must("down")
    (key,) = house.key_folder.glob("*.key")
    shutil.rmtree(house.home.path)
    house.must("restore", str(copy))
    assert texts(house) == ["before the backup"]
    # The home that came back has a key of its own, with the same words.
    assert len({path.read_text() for path in house.key_folder.glob("*.key")}) == 1
    assert key.exists()


def test_a_copy_from_before_the_seal_comes_back_sealed(house: House, copy: Path) -> None:
    house.must("key", "create")
    house.must("restore", str(copy))
    assert texts(house) == ["before the backup"]
    assert house.must("key", "show-id")["sealed"]
    house.must("down")
    for path in house.home.path.rglob("*"):
        if path.is_file():
            assert b"before the backup" not in path.read_bytes()


def test_a_store_that_cannot_be_opened_is_replaced(house: House, copy: Path) -> None:
    house.must("down")
    data = house.home.data("memory") / "store" / "data.mdb"
    data.write_bytes(b"no store " * 10_000)
    assert house.run("up").code == 1
    house.must("restore", str(copy))
    assert texts(house) == ["before the backup"]


def test_what_cannot_be_restored_changes_nothing(house: House, copy: Path) -> None:
    house.must("commit", "--role", "user", "after the backup")

    def refused(source: Path) -> str:
        told = error_of(house.run("restore", str(source), "--json"))
        assert told["fix"]
        assert not list(house.home.data("memory").glob("store.*"))
        return told["reason"]

    half = shutil.copytree(copy, house.project / "half")
    (half / MANIFEST_FILE).unlink()
    assert refused(half) == "BACKUP_UNFINISHED"
    damaged = shutil.copytree(copy, house.project / "damaged")
    data = bytearray((damaged / DATA_FILE).read_bytes())
    data[5000] ^= 1
    (damaged / DATA_FILE).write_bytes(data)
    assert refused(damaged) == "BACKUP_DAMAGED"
    assert refused(house.project / "nothing") == "BACKUP_UNKNOWN"
    assert refused(house.home.data("memory") / "store") == "BACKUP_UNKNOWN"
    pid = house.service("memory")["pid"]
    assert texts(house) == ["before the backup", "after the backup"]
    assert house.service("memory")["pid"] == pid


def test_a_copy_whose_key_is_not_here_is_refused(house: House, copy: Path) -> None:
    house.must("down")
    for path in house.key_folder.iterdir():
        path.unlink()
    shelf = KeyShelf(house.home, "file", str(house.key_folder))
    shelf.keep(HomeKey.make(SystemRandomness(), sealed=False), SystemRandomness())
    told = error_of(house.run("restore", str(copy), "--json"))
    assert told["reason"] == "STORE_KEY_OTHER"
    assert json.loads((copy / MANIFEST_FILE).read_text())["key_id"] in told["message"]
    assert shelf.where in told["message"]


def test_a_backup_goes_into_a_folder_of_its_own(house: House, copy: Path) -> None:
    told = error_of(house.run("backup", str(copy), "--json"))
    assert told["reason"] == "BACKUP_TARGET_EXISTS"
    inside = house.home.data("memory") / "store" / "copy"
    told = error_of(house.run("backup", str(inside), "--json"))
    assert told["reason"] == "BACKUP_TARGET_INVALID"


def test_records_that_cannot_be_opened_are_told_and_brought_back(house: House) -> None:
    for tenant in ("one", "two"):
        house.must("records", "remember", "c", "n", "kept", "--tenant", tenant)
    good, lacking = house.project / "good", house.project / "lacking"
    assert house.must("backup", str(good))["left_out"] == []
    described = house.must("records", "tenants")
    folder = next(Path(one["path"]).parent for one in described if one["tenant"] == "one")
    assert house.run("down").code == 0
    (folder / "current").write_bytes(b"\xff\xfe")
    ran = house.run("verify-store")
    assert ran.code == 1
    assert str(folder) in ran.out.decode()
    ran = house.run("backup", str(lacking))
    assert ran.code == 1
    assert str(folder) in ran.err
    assert len(list(lacking.glob("records/*/manifest.json"))) == 1
    house.must("restore", str(good))
    assert house.run("verify-store").code == 0
    for tenant in ("one", "two"):
        assert len(house.must("records", "list", "--tenant", tenant)) == 1
