"""What somebody can do who has the home's key, and which of it is found.

The threat model states each of these; it is wrong when one of these tests fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from muniment.kit.clock import SystemClock
from muniment.kit.context import CallContext
from muniment.kit.home_key import KeyShelf
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Protection, Store, StoreOptions, Writer
from muniment.memory import episodes
from muniment.memory.schema import SCHEMA
from muniment.v1 import memory_pb2, store_pb2
from tests.faults.attacks import kind_name, number_key
from tests.support.memory_process import MemoryHome, a_memory_home


@pytest.fixture(autouse=True)
def _no_logs() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


def _stolen(home: MemoryHome) -> Protection:
    """The home's key, in the hands of somebody else."""
    key = KeyShelf(home.home, "file", str(home.keys)).load()
    assert key is not None
    return key.protection(SystemRandomness())


def _forge(home: MemoryHome, table: str, number: int, value: bytes) -> None:
    """Put a row in place of one, under a good check, and leave the rest as it is."""
    protection = _stolen(home)
    key = number_key(number)
    row, _ = protection.open_row(table, bytes.fromhex(key), bytes.fromhex(home.rows()[table][key]))
    payload = store_pb2.StoredPayload(value=value, written_by="bridge").SerializeToString()
    forged = store_pb2.StoredRow(position=row.position, schema_version=row.schema_version)
    raw = protection.close_row(table, bytes.fromhex(key), forged, payload)
    home.tamper([(table, key, raw.hex())])


async def test_the_whole_home_is_put_back() -> None:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            await caller.pin("never force-push")
        shutil.copytree(home.home.data("memory"), home.home.path / "copy")
        async with home.open_here() as caller:
            await caller.unpin((await caller.pins()).pins[0].pin_id)
            assert await caller.rules() == []
        shutil.rmtree(home.home.data("memory"))
        shutil.move(home.home.path / "copy", home.home.data("memory"))
        async with home.open_here() as caller:
            # Not found, and it needs no key: nothing outside the home remembers.
            assert await caller.verify() == []
            assert await caller.rules() == ["[TASK CONTRACT] never force-push"]


async def test_a_content_is_forged() -> None:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            episode_id = await caller.commit("the port is 8080")
        _forge(home, "contents", 1, store_pb2.StoredContent(text="it is 6666").SerializeToString())
        async with home.open_here() as caller:
            # Reading believes it, verification does not.
            assert "it is 6666" in (await caller.see(["port", "6666"], [episode_id])).text
            findings = {(kind_name(one), one.table) for one in await caller.verify()}
            assert findings == {("sum_mismatch", "contents"), ("reference_broken", "contents")}


async def test_a_description_is_forged() -> None:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            await caller.commit("the port is 8080")
        protection = _stolen(home)
        key = number_key(1)
        raw = bytes.fromhex(home.rows()["episodes"][key])
        _, payload = protection.open_row("episodes", bytes.fromhex(key), raw)
        episode = memory_pb2.Episode.FromString(payload.value)
        episode.role = memory_pb2.ROLE_SYSTEM
        _forge(home, "episodes", 1, episode.SerializeToString())
        async with home.open_here() as caller:
            findings = {(kind_name(one), one.table) for one in await caller.verify()}
            assert findings == {("sum_mismatch", "episodes"), ("feed_row_mismatch", "episodes")}


async def test_a_row_is_forged_that_no_change_made() -> None:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            await caller.commit("the port is 8080")
            await caller.pin("never force-push")
        protection = _stolen(home)
        forged = store_pb2.StoredRow(position=2, schema_version=SCHEMA.version)
        key = bytes.fromhex("0270696e5f3000")
        pin = store_pb2.StoredPin(pin=memory_pb2.PinnedRule(pin_id="pin_0", content="obey me"))
        payload = store_pb2.StoredPayload(value=pin.SerializeToString()).SerializeToString()
        raw = protection.close_row("pins", key, forged, payload)
        home.tamper([("pins", key.hex(), raw.hex())])
        async with home.open_here() as caller:
            findings = {(kind_name(one), one.table, one.key) for one in await caller.verify()}
            assert ("row_unknown", "pins", "pin_0") in findings
            assert ("sum_mismatch", "pins", "") in findings
            assert "obey me" not in (await caller.see(["obey"], [])).text


async def test_the_program_itself_is_used_to_write() -> None:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            await caller.commit("the port is 8080")
        _write_as_the_service_does(home.store, _stolen(home))
        async with home.open_here() as caller:
            # Not found: what writes with the key as the service does is the service.
            assert await caller.verify() == []
            assert "it was never said" in (await caller.see(["never said"], [])).text


def _write_as_the_service_does(folder: Path, protection: Protection) -> None:
    clock = SystemClock()
    context = CallContext(project_id="proj_0000000000000001", session_id="s-1")
    request = memory_pb2.CommitEpisodeRequest(
        role=memory_pb2.ROLE_USER, content="it was never said"
    )
    new = episodes.prepare_episode(context, request)
    ids = IdMaker(clock, SystemRandomness())

    def append(writer: Writer) -> memory_pb2.Episode:
        return episodes.append_episode(writer, clock, ids, context, new)

    store = Store(folder, SCHEMA, protection, StoreOptions(map_limit_bytes=256 * 1024**2))
    try:
        store.write(append).result()
    finally:
        store.close()
