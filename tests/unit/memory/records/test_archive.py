"""What is forgotten, restored and purged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muniment.kit.errors import NotFoundError, PreconditionError
from muniment.kit.store.verify import verify_store
from muniment.memory.records.verification import RecordChecks
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records

SECRET = "sesame-open-4711"

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def archived(agent: Agent, **fields: Any) -> list[str]:
    listed = await agent.ask("ListArchive", **fields)
    return [one.entity.name for one in listed.archived]


async def test_what_is_forgotten_is_kept_whole(agent: Agent) -> None:
    await agent.remember("c", "n", '{"a":1}', status="active")
    before = await agent.entity("c", "n")
    archive_id = await agent.forget("c", "n", reason="obsolete")
    with pytest.raises(NotFoundError):
        await agent.entity("c", "n")
    (one,) = (await agent.ask("ListArchive")).archived
    assert (one.id, one.entity, one.reason) == (archive_id, before, "obsolete")
    stats = await agent.stats()
    assert (stats.entities, stats.archived) == (0, 1)


async def test_it_comes_back_as_it_was(agent: Agent) -> None:
    created = await agent.remember("c", "n", "1", status="s")
    before = await agent.entity("c", "n")
    archive_id = await agent.forget("c", "n")
    restored = await agent.ask("RestoreArchived", archive_id=archive_id)
    assert (restored.id, restored.category, restored.name) == (created.id, "c", "n")
    assert await agent.entity("c", "n") == before
    assert await archived(agent) == []
    for _ in range(2):
        with pytest.raises(NotFoundError):
            await agent.ask("RestoreArchived", archive_id=archive_id)


async def test_not_where_its_name_is_taken(agent: Agent) -> None:
    await agent.remember("c", "n", "1")
    archive_id = await agent.forget("c", "n")
    again = await agent.remember("c", "n", "2")
    with pytest.raises(PreconditionError) as refused:
        await agent.ask("RestoreArchived", archive_id=archive_id)
    assert refused.value.reason == "RECORD_NAME_TAKEN"
    assert (await agent.entity("c", "n")).id == again.id
    assert await archived(agent) == ["n"]


async def test_the_archive_is_listed_newest_first_in_pages(agent: Agent) -> None:
    for number in range(5):
        await agent.remember(f"c{number % 2}", f"n{number}", "1")
        await agent.forget(f"c{number % 2}", f"n{number}")
    assert await archived(agent, category="c0") == ["n4", "n2", "n0"]
    first = await agent.ask("ListArchive", limit=2)
    assert (first.total, [one.entity.name for one in first.archived]) == (5, ["n4", "n3"])
    assert await archived(agent, limit=9, cursor=first.next_cursor) == ["n2", "n1", "n0"]


def files_with(folder: Path, text: str) -> list[str]:
    raw = text.encode()
    return [path.name for path in folder.rglob("*") if path.is_file() and raw in path.read_bytes()]


async def test_a_purged_value_is_in_no_file_and_no_change(records: Records, agent: Agent) -> None:
    folder = records.generation(agent).folder
    for number in range(3):
        await agent.remember("vault", "n", f'"{SECRET} {number}"', status=SECRET)
    first = await agent.forget("vault", "n", reason=SECRET)
    await agent.ask("RestoreArchived", archive_id=first)
    archive_id = await agent.forget("vault", "n", reason=f"{SECRET} again")
    await agent.remember("other", "stays", '"kept"')
    assert "data.mdb" in files_with(folder, SECRET)
    gone = await agent.ask("PurgeArchived", archive_id=archive_id)
    assert (gone.category, gone.name) == ("vault", "n")
    assert files_with(folder.parent, SECRET) == []
    assert all(SECRET.encode() not in one.SerializeToString() for one in await agent.changes())
    assert (await agent.entity("other", "stays")).body_json == '{"value":"kept"}'
    assert await archived(agent) == []
    with pytest.raises(NotFoundError):
        await agent.ask("PurgeArchived", archive_id=archive_id)


async def test_its_name_is_gone_too(records: Records, agent: Agent) -> None:
    folder = records.generation(agent).folder
    await agent.remember(SECRET, SECRET, "1")
    await agent.remember(SECRET, SECRET, "2")
    archive_id = await agent.forget(SECRET, SECRET)
    await agent.ask("PurgeArchived", archive_id=archive_id)
    assert files_with(folder, SECRET) == []
    assert all(SECRET.encode() not in one.SerializeToString() for one in await agent.changes())


async def test_purging_leaves_another_of_the_name(records: Records, agent: Agent) -> None:
    await agent.remember("c", "n", f'"{SECRET}"')
    archive_id = await agent.forget("c", "n")
    await agent.remember("c", "n", '"second"')
    await agent.remember("c", "n", '"third"')
    await agent.ask("PurgeArchived", archive_id=archive_id)
    assert (await agent.entity("c", "n")).body_json == '{"value":"third"}'
    told = b"".join(one.SerializeToString() for one in await agent.changes())
    assert b"second" in told
    assert SECRET.encode() not in told
    assert files_with(records.generation(agent).folder, SECRET) == []


async def test_the_feed_fits_the_rows_after_a_purge(records: Records, agent: Agent) -> None:
    await agent.remember("c", "n", "1")
    for _ in range(2):
        archive_id = await agent.forget("c", "n")
        await agent.ask("RestoreArchived", archive_id=archive_id)
    await agent.remember("c", "other", "1")
    other = await agent.forget("c", "other")
    archive_id = await agent.forget("c", "n")
    await agent.ask("PurgeArchived", archive_id=archive_id)
    await agent.ask("PurgeArchived", archive_id=other)
    store, index = records.generation(agent).store, records.generation(agent).index
    checks = RecordChecks(index, store.read, lambda: None)
    assert verify_store(store, checks, lambda step, done, total: None).findings.listed == []


async def test_a_purge_that_is_asked_for_again_succeeds_again(agent: Agent) -> None:
    await agent.remember("c", "n", "1")
    archive_id = await agent.forget("c", "n")
    for _ in range(2):
        await agent.ask("PurgeArchived", archive_id=archive_id, once="purge")


async def test_what_was_replaced_is_purged_too(agent: Agent, records: Records) -> None:
    await agent.remember("c", "n", f'"{SECRET}"')
    before, _ = await agent.export()
    await agent.take(before, into_next=True)
    archive_id = await agent.forget("c", "n")
    await agent.ask("PurgeArchived", archive_id=archive_id)
    assert files_with(records.generation(agent).folder.parent, SECRET) == []


async def test_in_a_sealed_home_nothing_can_be_read_in_any_file() -> None:
    with a_home() as home:
        async with a_records(home, sealed=True) as records:
            agent = records.agent("acme")
            await agent.remember("vault", f"{SECRET}-name", f'"{SECRET}"', status=SECRET)
            await agent.ask("SetState", key=f"{SECRET}-key", body_json=f'"{SECRET}"')
            await agent.ask("PutReference", key=SECRET, body=SECRET)
            await agent.ask("RecordEvent", kind=SECRET, body_json=f'{{"a":"{SECRET}"}}')
            await agent.forget("vault", f"{SECRET}-name")
            await agent.remember("vault", "b", f'"{SECRET}"')
            found = await agent.ask("SearchRecords", query=SECRET)
            assert found.hits
            listed = await agent.ask("ListEntities", category="vault")
            assert [one.entity.name for one in listed.entities] == ["b"]
            keys = [one.key for one in (await agent.ask("ListStates")).states]
            assert keys == [f"{SECRET}-key"]
        assert files_with(home.path, SECRET) == []
