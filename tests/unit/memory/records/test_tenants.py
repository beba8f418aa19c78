"""A tenant's damaged folder: nothing of it is deleted, and nobody else is held up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment.kit.errors import PreconditionError, UnavailableError
from muniment.kit.paths import Home
from muniment.kit.stores import CURRENT_FILE, LEXICAL_FILE
from muniment.v1 import records_pb2 as pb
from tests.support.dense import HashedEmbedder
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def home() -> Iterator[Home]:
    with a_home() as home:
        yield home


async def _two_tenants(home: Home) -> Path:
    """The folder of the tenant `one`; the tenant `two` has as much."""
    async with a_records(home, seed=7) as records:
        for tenant in ("one", "two"):
            await records.agent(tenant).remember("c", "n", '"kept"')
        return records.generation(records.agent("one")).folder.parent


async def _names(agent: Agent) -> list[str]:
    listed = await agent.ask("ListEntities", limit=10)
    return [one.entity.name for one in listed.entities]


async def _unopened(records: Records) -> list[pb.UnopenedRecords]:
    return list((await records.agent("two").ask("ListTenants")).unopened)


async def test_a_lost_account_of_the_generation_loses_no_records(home: Home) -> None:
    folder = await _two_tenants(home)
    (folder / CURRENT_FILE).unlink()
    async with a_records(home, seed=7) as records:
        assert [one.path for one in await _unopened(records)] == [str(folder)]
        assert await _names(records.agent("one")) == ["n"]
        assert await _unopened(records) == []
    async with a_records(home, seed=7) as records:
        assert await _unopened(records) == []
        assert await _names(records.agent("one")) == ["n"]


async def test_which_of_several_generations_is_in_force_is_not_guessed(home: Home) -> None:
    folder = await _two_tenants(home)
    async with a_records(home, seed=7) as records:
        agent = records.agent("one")
        await agent.take((await agent.export())[0], into_next=True)
    (folder / CURRENT_FILE).unlink()
    async with a_records(home, seed=7) as records:
        with pytest.raises(PreconditionError) as refused:
            await _names(records.agent("one"))
        assert refused.value.reason == "STORE_UNREADABLE"
    assert len(list(folder.glob("generation-*/store/data.mdb"))) == 2
    (folder / CURRENT_FILE).write_text("2\n")
    async with a_records(home, seed=7) as records:
        assert await _names(records.agent("one")) == ["n"]


def _no_text(folder: Path) -> None:
    (folder / CURRENT_FILE).write_bytes(b"\xff\xfe\x00")


def _no_file(folder: Path) -> None:
    (folder / CURRENT_FILE).unlink()
    (folder / CURRENT_FILE).mkdir()


def _no_end_of_digits(folder: Path) -> None:
    (folder / CURRENT_FILE).write_text("9" * 5000)


def _no_index(folder: Path) -> None:
    index = folder / "generation-000001" / LEXICAL_FILE
    for path in index.parent.glob(f"{LEXICAL_FILE}*"):
        path.unlink()
    index.mkdir()


@pytest.mark.parametrize("damage", [_no_text, _no_file, _no_end_of_digits, _no_index])
async def test_a_damaged_tenant_keeps_nobody_else_down_and_is_told(
    home: Home, damage: Callable[[Path], None]
) -> None:
    folder = await _two_tenants(home)
    (folder.parent / "something-else").write_text("of nobody")
    (folder / "generation-000001.kept").mkdir()
    damage(folder)
    async with a_records(home, seed=7) as records:
        assert await _names(records.agent("two")) == ["n"]
        (unopened,) = await _unopened(records)
        assert unopened.path == str(folder)
        assert unopened.trouble


async def test_what_could_not_be_opened_can_be_once_it_is_mended(home: Home) -> None:
    folder = await _two_tenants(home)
    _no_index(folder)
    async with a_records(home, seed=7) as records:
        assert len(await _unopened(records)) == 1
        (folder / "generation-000001" / LEXICAL_FILE).rmdir()
        assert await _names(records.agent("one")) == ["n"]
        assert await _unopened(records) == []


async def test_of_what_was_replaced_no_dense_index_comes_back(home: Home) -> None:
    async with a_records(home, embedder=HashedEmbedder()) as records:
        agent = records.agent("one")
        await agent.remember("c", "n", '"kept"')
        folder = records.generation(agent).folder.parent
        for number in (2, 3, 4):
            replaced = records.generation(agent)
            assert replaced.dense is not None
            await agent.take((await agent.export())[0], into_next=True)
            with pytest.raises(UnavailableError) as closed:
                replaced.dense.vectors  # noqa: B018
            assert closed.value.reason == "INDEX_CLOSED"
            kept = sorted(path.name for path in folder.glob("generation-*"))
            assert kept == [f"generation-{one:06d}" for one in (number - 1, number)]
