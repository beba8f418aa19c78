"""A stranger writes to the store's files: verification finds it, and nobody believes it."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
import pytest_asyncio
import structlog

from muniment.kit.errors import TamperedError
from muniment.v1 import memory_pb2
from tests.faults.attacks import ATTACKS, SEALED_ATTACKS, Attack, Scene, kind_name
from tests.support.memory_process import Caller, MemoryHome, a_memory_home

QUERIES = ("port", "sky grass", "force push tests", "English")

Stage = tuple[MemoryHome, Scene]


@pytest.fixture(scope="module", autouse=True)
def _no_logs() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


async def _set(home: MemoryHome) -> Scene:
    """Let a session take place, part of it before and part after a look at the rows."""
    async with home.open_here() as caller:
        names = {"project": caller.context.project_id}
        names["port_id"] = await caller.commit("the port is 8080 at first")
        await caller.commit("correction: the port is 8181", corrects=names["port_id"])
        names["sky_id"] = await caller.commit("the sky is blue")
        names["push_pin"] = await caller.pin("never force-push")
        names["tests_pin"] = await caller.pin("always run the tests")
        old = home.rows()
        await caller.commit("correction: the port is 9090", corrects=names["port_id"])
        await caller.pin("never force-push", memory_pb2.PIN_KIND_SAFETY_CONSTRAINT)
        await caller.unpin(names["tests_pin"])
        names["late_pin"] = await caller.pin("write British English")
        names["grass_id"] = await caller.commit("the grass is green")
    names |= {"port": "1", "sky": "3", "grass": "5"}
    for name, rule in (("push", "never force-push"), ("tests", "always run the tests")):
        # As a key has it, where zeros are escaped.
        digest = hashlib.sha256(rule.encode()).digest().replace(b"\0", b"\0\xff")
        names[f"{name}_place"] = digest.hex()
    return Scene(old, home.rows(), names)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    with a_memory_home() as home:
        yield home, await _set(home)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sealed_stage() -> AsyncIterator[Stage]:
    with a_memory_home() as home:
        home.seal()
        yield home, await _set(home)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(stage: Stage) -> AsyncIterator[tuple[MemoryHome, Caller, Scene]]:
    """A copy of the stage whose service runs through all tests that use it."""
    home, scene = stage
    with home.copied() as copy:
        async with copy.running() as caller:
            await caller.rules()
            yield copy, caller, scene


async def _check(caller: Caller, scene: Scene, attack: Attack, *, after_start: bool) -> None:
    ids = [scene.names[name] for name in ("port_id", "sky_id", "grass_id")]
    seen = await caller.see(QUERIES, ids)
    expected = attack.marks | (attack.marks_after_start if after_start else frozenset())
    assert seen.marked >= expected, f"not marked: {expected - seen.marked}"
    for text in attack.hides:
        assert text not in seen.text
    findings = await caller.verify()
    found = {(kind_name(one), one.table) for one in findings}
    assert found >= attack.findings, findings
    keys = {one.key for one in findings}
    assert keys >= {scene.names[name] for name in attack.names}, findings
    assert all(one.found and one.mend for one in findings)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ATTACKS)
async def test_done_while_the_service_runs(
    running: tuple[MemoryHome, Caller, Scene], name: str
) -> None:
    home, caller, scene = running
    operations = list(ATTACKS[name].make(scene))
    home.tamper(operations)
    try:
        await _check(caller, scene, ATTACKS[name], after_start=False)
    finally:
        home.tamper(scene.undo(operations))
    assert await caller.verify() == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ATTACKS)
async def test_done_while_the_service_is_stopped(stage: Stage, name: str) -> None:
    await _attack_and_start(*stage, ATTACKS[name])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SEALED_ATTACKS)
async def test_done_to_a_sealed_store(sealed_stage: Stage, name: str) -> None:
    await _attack_and_start(*sealed_stage, SEALED_ATTACKS[name])


async def _attack_and_start(home: MemoryHome, scene: Scene, attack: Attack) -> None:
    with home.copied() as copy:
        copy.tamper(list(attack.make(scene)))
        async with copy.open_here() as caller:
            await _check(caller, scene, attack, after_start=True)
            # Whatever was done, turns and rules are taken on.
            await caller.commit("a heron in the pond")
            assert "a heron in the pond" in (await caller.see(["heron"], [])).text
            await caller.pin("feed the heron")
            assert "[TASK CONTRACT] feed the heron" in await caller.rules()
        async with copy.open_here() as caller:
            # What was found stays found, and what was written since is believed.
            seen = await caller.see([*QUERIES, "heron"], [])
            assert "[TASK CONTRACT] feed the heron" in seen.text
            assert not any(text in seen.text for text in attack.hides)
            assert {kind_name(one) for one in await caller.verify()}


@pytest.mark.asyncio(loop_scope="module")
async def test_facts_of_the_store_are_edited(
    running: tuple[MemoryHome, Caller, Scene],
) -> None:
    home, caller, scene = running
    key = b"\x02schema\x00".hex()
    edit = [("meta", key, scene.new["meta"][key] + "1801")]
    home.tamper(edit)
    assert [kind_name(one) for one in await caller.verify()] == ["schema"]
    home.tamper(scene.undo(edit))
    assert await caller.verify() == []


@pytest.mark.asyncio(loop_scope="module")
async def test_the_index_is_edited(running: tuple[MemoryHome, Caller, Scene]) -> None:
    home, caller, scene = running
    with closing(sqlite3.connect(home.index)) as index, index:
        index.execute("DELETE FROM documents WHERE key = 'episode:3'")
        pin = f"pin:{scene.names['push_pin']}"
        index.execute("UPDATE documents SET key = 'pin:pin_0' WHERE key = ?", (pin,))
        index.execute("UPDATE documents SET key = 'episode:99' WHERE key = 'episode:5'")
    # A place beyond the newest is taken for a turn that was written since, and of what the index
    # hides nothing can be said: verification tells.
    seen = await caller.see(["grass", "sky", "force push"], [])
    assert not any(
        text in seen.text for text in ("the grass is green", "the sky is blue", "episode:99")
    )
    findings = {(kind_name(one), one.key) for one in await caller.verify()}
    names = scene.names
    assert findings >= {
        ("index_missing", names["sky_id"]),
        ("index_missing", names["grass_id"]),
        ("index_missing", names["push_pin"]),
        ("index_surplus", "pin_0"),
        ("index_surplus", "number 99"),
    }
    assert await caller.reindex() == 7
    assert await caller.verify() == []
    assert "the sky is blue" in (await caller.see(["sky"], [])).text


@pytest.mark.asyncio(loop_scope="module")
async def test_the_index_finds_nothing_across_projects(
    running: tuple[MemoryHome, Caller, Scene],
) -> None:
    home, caller, _ = running
    other = caller.in_project("proj_0000000000000002")
    await other.commit("the cellar key hangs behind the clock")
    with closing(sqlite3.connect(home.index)) as index:
        own, foreign = (
            index.execute("SELECT * FROM documents WHERE key = ?", (key,)).fetchone()
            for key in ("episode:3", "episode:6")
        )
        assert own != foreign
        with index:
            # Its words lead to another project's episode now.
            index.execute("UPDATE documents SET key = 'x' WHERE key = 'episode:3'")
            index.execute("UPDATE documents SET key = 'episode:3' WHERE key = 'episode:6'")
            index.execute("UPDATE documents SET key = 'episode:6' WHERE key = 'x'")
    assert "cellar" not in (await caller.see(["sky blue"], [])).text
    await caller.reindex()


@pytest.mark.asyncio(loop_scope="module")
async def test_purged_episodes_are_put_back(stage: Stage) -> None:
    with stage[0].copied() as copy:
        async with copy.open_here() as caller:
            other = caller.in_project("proj_0000000000000002")
            purged = await other.commit("the cellar key hangs behind the clock")
            with_it = copy.rows()
            await other.purge()
            again = await other.commit("an innocent turn")
        put_back = [
            (table, key, row)
            for table in ("episodes", "contents", "episode_ids", "sessions")
            for key, row in (with_it[table].items() - copy.rows()[table].items())
        ]
        assert len(put_back) == 4
        copy.tamper(put_back)
        async with copy.open_here() as caller:
            other = caller.in_project("proj_0000000000000002")
            seen = await other.see(["cellar key", "innocent"], [purged, again])
            assert "behind the clock" not in seen.text
            assert "an innocent turn" in seen.text
            assert {"recall", "show", "episodes"} <= seen.marked
            findings = {(kind_name(one), one.table, one.key) for one in await caller.verify()}
            assert ("row_older", "episodes", purged) in findings


@pytest.mark.asyncio(loop_scope="module")
async def test_pins_are_mended_by_pinning_and_unpinning(stage: Stage) -> None:
    home, scene = stage
    with home.copied() as copy:
        attacks = (
            "an older kind of a pin is put back",
            "a pin that was taken away is put back",
        )
        copy.tamper([one for name in attacks for one in ATTACKS[name].make(scene)])
        spoilt = [*ATTACKS["a pin is deleted"].make(scene)]
        async with copy.open_here() as caller:
            assert await caller.rules() == ["[TASK CONTRACT] write British English"]
            push_pin = await caller.pin("never force-push", memory_pb2.PIN_KIND_SAFETY_CONSTRAINT)
            assert push_pin == scene.names["push_pin"]
            await caller.unpin(scene.names["tests_pin"])
            mended = [
                "[SAFETY CONSTRAINT] never force-push",
                "[TASK CONTRACT] write British English",
            ]
            assert await caller.rules() == mended
            copy.tamper(spoilt)
            assert await caller.rules() == mended[1:]
            await caller.unpin(push_pin)
            assert await caller.rules() == mended[1:]
        async with copy.open_here() as caller:
            assert await caller.rules() == mended[1:]
            kinds = {(kind_name(one), one.table) for one in await caller.verify()}
            assert kinds == {("sum_mismatch", "pins"), ("sum_mismatch", "pin_scopes")}


@pytest.mark.asyncio(loop_scope="module")
async def test_verification_goes_on_under_writes(stage: Stage) -> None:
    with stage[0].copied() as copy:
        async with copy.open_here() as caller:
            # So much that the map grows under the verification.
            turns = [caller.commit(f"turn {number} " + "x" * 900_000) for number in range(40)]
            verifying = [caller.verify() for _ in range(3)]
            results = await asyncio.gather(*verifying, *turns)
            assert results[:3] == [[], [], []]
            assert await caller.verify() == []


@pytest.mark.asyncio(loop_scope="module")
async def test_one_row_is_taken_away_and_another_slipped_in(stage: Stage) -> None:
    home, scene = stage
    gone = scene.key("sessions", "sky")
    other = gone.replace(b"proj_".hex(), b"porj_".hex())
    with home.copied() as copy:
        copy.tamper([("sessions", gone, None), ("sessions", other, scene.new["sessions"][gone])])
        async with copy.open_here() as caller:
            # The counts are right, so that the list has no mark: verification has to tell.
            seen = await caller.see(["grass"], [])
            assert "episodes" not in seen.marked
            findings = {(kind_name(one), one.table, one.key) for one in await caller.verify()}
            sky = scene.names["sky_id"]
            assert {kind for kind, _, key in findings if key == sky} == {
                "row_missing",
                "row_tampered",
            }


@pytest.mark.asyncio(loop_scope="module")
async def test_outcomes_of_calls_are_edited_or_taken_away(stage: Stage) -> None:
    with stage[0].copied() as copy:
        async with copy.open_here() as caller:
            first = await caller.commit("once", key="the-key")
            assert await caller.commit("once", key="the-key") == first
            (place,) = (key for key in copy.rows()["replies"] if b"the-key".hex() in key)
            row = copy.rows()["replies"][place]
            copy.tamper([("replies", place, "00" + row)])
            with pytest.raises(TamperedError):
                await caller.commit("once", key="the-key")
            copy.tamper([("replies", place, None)])
            assert await caller.commit("once", key="the-key") != first
            kinds = {(kind_name(one), one.table) for one in await caller.verify()}
            assert ("sum_mismatch", "replies") in kinds


@pytest.mark.asyncio(loop_scope="module")
async def test_an_episode_is_edited_and_the_index_made_anew(stage: Stage) -> None:
    home, scene = stage
    with home.copied() as copy:
        copy.tamper(list(ATTACKS["a content is edited"].make(scene)))
        copy.index.unlink()
        async with copy.open_here() as caller:
            await caller.reindex()
            assert (await caller.see(["8080"], [])).marked == set()
            assert "show" in (await caller.see([], [scene.names["port_id"]])).marked
