"""The search index follows the store, whatever happened to its file while nobody looked."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.index.lexical import Document, LexicalIndex, Progress
from muniment.kit.paths import Home
from muniment.kit.store.tables import CHANGES
from muniment.memory.recall import recall
from muniment.v1 import memory_pb2
from tests.support.memory import Agent, Memory, a_memory
from tests.support.rows import scan
from tests.support.store_checks import demand_same_index

pytestmark = pytest.mark.asyncio(loop_scope="session")

DAMAGE = "UPDATE terms_data SET block = x'ff'"
# The rows of segments, but not of their directory.
DAMAGE_OF_SEGMENTS = f"{DAMAGE} WHERE id > 100"

QUERIES = ("needle", "port of the server", "rule", "changed", "gone")


def index_file(home: Home) -> Path:
    return home.data("memory") / "lexical.sqlite3"


async def fill(memory: Memory) -> Agent:
    """Something of everything: episodes, corrections, pins of two sessions, one taken away."""
    agent = memory.agent("proj_1")
    wrong = await agent.commit("the port of the server is 8080")
    await agent.commit("needle one")
    await agent.commit("the port of the server is 8443", corrects=wrong.episode_id)
    await agent.pin("a rule about the needle")
    await agent.pin("a rule of another session", session_id="s-2")
    gone = (await agent.pin("a rule that is gone, with the needle")).pin
    await agent.pin("a changed rule")
    await agent.pin("a changed rule", kind=memory_pb2.PIN_KIND_SAFETY_CONSTRAINT)
    await agent.unpin(gone.pin_id)
    await memory.agent("proj_2").commit("needle of another project")
    for number in range(15):
        await agent.commit(f"filler number {number} with many words about servers and ports")
    return agent


async def answers(agent: Agent) -> list[memory_pb2.RecallResponse]:
    return [await agent.recall(query, k=20) for query in QUERIES]


def demand_up_to_date(memory: Memory) -> None:
    """Fail where the index, once it is filled, is not as one that is made anew."""
    assert memory.index.progress.position == memory.store.position
    memory.fill_index()
    demand_same_index(memory.store, memory.index, memory.agent("proj_1").context, QUERIES)


def delete(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    with file.open("rb+") as opened:
        opened.truncate(file.stat().st_size // 2)


def garbage(file: Path) -> None:
    file.write_bytes(b"this is no database" * 500)


def overwrite(file: Path) -> None:
    with file.open("rb+") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * 8192)


def change_file(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement)
    connection.close()


def behind(file: Path) -> None:
    change_file(file, "UPDATE progress SET position = 3")


def without_tables(file: Path) -> None:
    change_file(file, "DROP TABLE terms")


def another_analysis(file: Path) -> None:
    change_file(file, "PRAGMA user_version = 1000")


@pytest.mark.parametrize(
    "happens",
    [delete, empty, cut, garbage, overwrite, another_analysis, behind, without_tables],
)
async def test_answers_are_the_same_whatever_happened_to_the_file(
    home: Home, happens: Callable[[Path], None]
) -> None:
    async with a_memory(home) as memory:
        before = await answers(await fill(memory))
    assert all(answer.hits for answer in before[:4])
    happens(index_file(home))
    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        demand_up_to_date(memory)
        assert await answers(agent) == before
        await agent.commit("needle after")
        assert "needle after" in await agent.found("needle")


async def test_an_index_that_is_behind_catches_up_from_the_feed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_memory(home) as memory:
        await memory.agent("proj_1").commit("needle zero")
    shutil.copy(index_file(home), tmp_path / "old")
    async with a_memory(home) as memory:
        before = await answers(await fill(memory))
    shutil.copy(tmp_path / "old", index_file(home))

    def refuse(index: LexicalIndex) -> None:
        raise AssertionError("the index is made anew")

    with monkeypatch.context() as patch:
        patch.setattr(LexicalIndex, "reset", refuse)
        async with a_memory(home) as memory:
            assert memory.index.progress.below == 0
            assert await answers(memory.agent("proj_1")) == before
    async with a_memory(home) as memory:
        demand_up_to_date(memory)


async def test_an_index_that_is_ahead_is_made_anew(home: Home, tmp_path: Path) -> None:
    """As after a backup of the store alone was restored."""
    store = home.data("memory") / "store"
    async with a_memory(home) as memory:
        before = await answers(await fill(memory))
    shutil.copytree(store, tmp_path / "backup")
    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        await agent.commit("needle that the backup does not have")
        await agent.pin("a rule that the backup does not have")
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "backup", store)
    async with a_memory(home) as memory:
        demand_up_to_date(memory)
        agent = memory.agent("proj_1")
        assert await answers(agent) == before
        await agent.commit("needle that the backup does not have, again")
        demand_up_to_date(memory)


async def test_an_index_without_its_store_is_made_anew(home: Home) -> None:
    async with a_memory(home) as memory:
        await fill(memory)
    shutil.rmtree(home.data("memory") / "store")
    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        assert await agent.found("needle") == []
        await agent.commit("needle of a new life")
        assert await agent.found("needle") == ["needle of a new life"]


async def test_damage_that_a_write_meets_is_mended_under_it(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = await fill(memory)
        before = {hit.text for hit in (await agent.recall("needle")).hits}
        change_file(index_file(home), DAMAGE)
        await agent.commit("needle after")
        demand_up_to_date(memory)
        assert set(await agent.found("needle")) == before | {"needle after"}


async def test_damage_that_a_search_meets_is_mended_by_the_next_write(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = await fill(memory)
        before = set(await agent.found("needle"))
        change_file(index_file(home), DAMAGE_OF_SEGMENTS)
        request = memory_pb2.RecallRequest(query="needle")
        with memory.store.read() as reader, pytest.raises(UnavailableError) as refused:
            recall(reader, memory.index, agent.context, request)
        assert refused.value.reason == "INDEX_DAMAGED"
        assert "next write" in (refused.value.fix or "")
        await memory.agent("proj_2").commit("anything")
        demand_up_to_date(memory)
        assert set(await agent.found("needle")) == before


async def test_a_change_that_could_not_be_indexed_is_kept_and_indexed_later(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = LexicalIndex.apply
    failures = [UnavailableError("disk is full", reason="INDEX_UNAVAILABLE")] * 2

    def fails(index: LexicalIndex, documents: Iterable[Document], progress: Progress) -> None:
        if failures:
            raise failures.pop()
        apply(index, documents, progress)

    async with a_memory(home) as memory:
        agent = memory.agent()
        monkeypatch.setattr(LexicalIndex, "apply", fails)
        # The caller is patient, and its key makes the repetition harmless.
        episode = await agent.commit("needle")
        assert not failures
        assert await agent.episodes() == [episode]
        assert await agent.found("needle") == ["needle"]


async def test_every_change_is_in_the_feed_once(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = memory.agent()
        await agent.commit("x")
        pin = (await agent.pin("y")).pin
        await agent.pin("y")
        await agent.unpin(pin.pin_id)
        with memory.store.read() as reader:
            tables = [change.table for _, change in scan(reader, CHANGES)]
    assert tables == ["episodes", "pins", "pin_scopes", "pins", "pin_scopes"]
