"""Exports, imports, and replacement by a next generation while others write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Any, cast

import grpc
import pytest

from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.rpc_errors import from_rpc_error
from muniment.kit.store import Store
from muniment.memory.records.tenants import Generation
from muniment.v1 import records_pb2 as pb
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def fill(agent: Agent, entities: int = 3) -> None:
    for number in range(entities):
        await agent.remember("c", f"n{number}", str(number), status="s")
    await agent.forget("c", "n0")
    await agent.ask("SetState", key="k", body_json="1")
    await agent.ask("PutReference", key="r", body="text", metadata_json='{"a":1}')
    await agent.ask("RecordEvent", kind="e", body_json="{}", category="c", name="n1")


async def _begin(
    agent: Agent, exported: list[pb.Record]
) -> tuple[asyncio.Task[pb.ImportRecordsResponse], asyncio.Event]:
    """Begin a replacement that ends when the event is set."""
    go = asyncio.Event()

    async def parts() -> AsyncIterator[pb.ImportRecordsRequest]:
        yield pb.ImportRecordsRequest(header=pb.ImportHeader(replace=True))
        yield pb.ImportRecordsRequest(records=exported)
        await go.wait()

    async def run() -> pb.ImportRecordsResponse:
        try:
            return await agent.stub.ImportRecords(
                parts(), timeout=30, metadata=agent.context.to_metadata()
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, "memory") from error

    return asyncio.create_task(run()), go


@dataclass(frozen=True)
class _Told:
    """A store that says when it was asked for something."""

    store: Store
    asked: Event
    """Set by what is to run between its transactions."""
    written: Event
    """Set by a change."""

    def between(self, work: Callable[[], Any]) -> Future[Any]:
        found = self.store.between(work)
        self.asked.set()
        return found

    def write(self, *arguments: Any, **more: Any) -> Future[Any]:
        found: Future[Any] = self.store.write(*arguments, **more)
        self.written.set()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


async def _building(present: Generation) -> None:
    """Wait until the next generation's building has begun: its store is there."""
    folder = present.folder.parent / f"generation-{present.number + 1:06d}"
    await asyncio.to_thread(
        until, lambda: list(folder.rglob("data.mdb")), "the next generation is begun"
    )


def in_order(records: list[pb.Record]) -> list[bytes]:
    return sorted(one.SerializeToString(deterministic=True) for one in records)


async def test_an_export_is_taken_in_as_it_was(agent: Agent, records: Records) -> None:
    await fill(agent)
    exported, end = await agent.export()
    assert (len(exported), end.records, end.tampered) == (6, 6, 0)
    assert end.tenant_id == agent.context.tenant_id
    other = records.agent()
    told = await other.take(exported)
    assert dict(told.taken) == {"entity": 2, "state": 1, "reference": 1, "journal": 1, "archive": 1}
    assert in_order((await other.export())[0]) == in_order(exported)
    again = await other.take(exported)
    assert (dict(again.taken), again.same, again.kept_total) == ({}, 6, 0)
    mine, theirs = await agent.stats(), await other.stats()
    assert mine.used_bytes == theirs.used_bytes


async def test_what_differs_stays_and_is_told(agent: Agent) -> None:
    await fill(agent)
    exported, _ = await agent.export()
    await agent.remember("c", "n1", "9")
    told = await agent.take(exported)
    assert (told.same, told.kept_total, dict(told.taken)) == (5, 1, {})
    assert [(one.category, one.key) for one in told.kept] == [("c", "n1")]
    assert (await agent.entity("c", "n1")).body_json == '{"value":9}'


@pytest.mark.parametrize(
    "record",
    [
        pb.Record(),
        pb.Record(entity=pb.Entity(category="c", name="", body_json="{}")),
        pb.Record(entity=pb.Entity(category="", name="n", body_json="{}")),
        pb.Record(entity=pb.Entity(category="c", name="n", body_json="{")),
        pb.Record(entity=pb.Entity(category="c", name="n" * 1025, body_json="{}")),
        pb.Record(entity=pb.Entity(category="c", name="a\x1fb", body_json="{}")),
        pb.Record(state=pb.StateDocument(key="", body_json="{}")),
        pb.Record(state=pb.StateDocument(key="k", body_json="NaN")),
        pb.Record(reference=pb.ReferenceDocument(key="k", metadata_json="x")),
        pb.Record(event=pb.JournalEvent(id="", acted_json="{}")),
        pb.Record(event=pb.JournalEvent(id="e", acted_json="}")),
    ],
)
async def test_a_batch_with_what_cannot_be_kept_is_not_taken(
    agent: Agent, record: pb.Record
) -> None:
    good = pb.Record(state=pb.StateDocument(key="good", body_json="1"))
    for into_next in (False, True):
        with pytest.raises(InvalidArgumentError):
            await agent.take([good, record], into_next=into_next)
    stats = await agent.stats()
    assert (stats.states, stats.generation) == (0, 1)


async def test_foreign_names_are_kept_and_within_reach(agent: Agent) -> None:
    names = ["a|b", "x;y", "..", "e\u0301", "a\nb"]
    entities = [
        pb.Record(entity=pb.Entity(id=f"id{number}", category="c", name=name, body_json="[1]"))
        for number, name in enumerate(names)
    ]
    await agent.take(entities)
    for number, name in enumerate(names):
        assert (await agent.entity("c", name)).id == f"id{number}"
    # A write to a name that is there in another Unicode form is of the same record.
    assert (await agent.remember("c", "\u00e9", "2")).id == "id3"
    assert (await agent.entity("c", "e\u0301")).body_json == '{"value":2}'


async def test_the_next_generation_has_the_import_and_what_was_written_meanwhile(
    agent: Agent, records: Records
) -> None:
    await fill(agent)
    exported, _ = await agent.export()
    await agent.remember("old", "gone", "1")
    present = records.generation(agent)

    importing, go = await _begin(agent, exported)
    await _building(present)
    first = await agent.remember("c", "new", "1", once="k")
    await agent.ask("SetState", key="k2", body_json="2")
    await agent.ask("DeleteState", key="k2")
    await agent.ask("SetState", key="k3", body_json="3")
    event = await agent.ask("RecordEvent", kind="late", body_json="{}")
    go.set()
    told = await importing
    assert (told.generation, told.carried_over) == (2, 3)
    now, _ = await agent.export()
    names = {one.entity.name for one in now if one.HasField("entity")}
    assert names == {"n1", "n2", "new"}
    assert {one.state.key for one in now if one.HasField("state")} == {"k", "k3"}
    assert event.event_id in {one.event.id for one in now}
    # The outcomes of calls went along.
    assert await agent.remember("c", "new", "1", once="k") == first
    assert records.generation(agent).number == 2


async def test_what_is_written_during_replacements_is_there(agent: Agent, records: Records) -> None:
    await fill(agent)
    for generation in range(2, 6):
        exported, _ = await agent.export()
        importing, go = await _begin(agent, exported)
        await _building(records.generation(agent))
        names = [f"w{generation}-{number}" for number in range(20)]

        async def write(names: list[str] = names, go: asyncio.Event = go) -> None:
            for name in names:
                await agent.remember("w", name, "1")
                if name == names[3]:
                    go.set()

        await asyncio.gather(importing, write())
        assert importing.result().generation == generation
        for name in names:
            await agent.entity("w", name)
    assert (await agent.ask("ListEntities", category="w")).total == 80


async def test_a_record_that_changed_here_and_there_is_a_fork(
    agent: Agent, records: Records
) -> None:
    await fill(agent)
    exported, _ = await agent.export()
    for one in exported:
        if one.HasField("entity"):
            one.entity.body_json = '{"value":"imported"}'
    present = records.generation(agent)
    importing, go = await _begin(agent, exported)
    await _building(present)
    await agent.remember("c", "n1", '"here"')
    go.set()
    with pytest.raises(PreconditionError) as refused:
        await importing
    assert refused.value.reason == "FORK"
    assert "entity c/n1" in refused.value.message
    assert (await agent.entity("c", "n1")).body_json == '{"value":"here"}'
    assert (await agent.stats()).generation == 1
    assert not (present.folder.parent / "generation-000002").exists()


async def test_a_restart_has_what_is_in_force_and_removes_what_was_not_finished() -> None:
    with a_home() as home:
        async with a_records(home) as records:
            agent = records.agent("acme")
            await fill(agent)
            exported, _ = await agent.export()
            await agent.take(exported, into_next=True)
            folder = records.generation(agent).folder.parent
        unfinished = folder / "generation-000003" / "store"
        unfinished.mkdir(parents=True)
        async with a_records(home) as records:
            agent = records.agent("acme")
            assert (await agent.stats()).generation == 2
            assert in_order((await agent.export())[0]) == in_order(exported)
            assert not unfinished.exists()
            listed = (await agent.ask("ListTenants")).tenants
            assert [(one.tenant_id, one.generation) for one in listed] == [("acme", 2)]


async def test_an_import_that_meets_a_replacement_is_taken_by_the_next_generation(
    agent: Agent, records: Records
) -> None:
    present = records.generation(agent)
    real, go = present.store, Event()
    told = _Told(real, Event(), Event())
    present.store = cast("Store", told)
    replacing, end = await _begin(agent, [])
    await _building(present)
    held = real.between(lambda: go.wait(20))
    end.set()
    await asyncio.to_thread(until, told.asked.is_set, "the replacement waits for the writer")
    state = pb.Record(state=pb.StateDocument(key="mine", body_json="1"))
    importing = asyncio.create_task(agent.take([state]))
    await asyncio.to_thread(until, told.written.is_set, "the import waits behind it")
    go.set()
    assert held.result()
    assert (await replacing).generation == 2
    assert dict((await importing).taken) == {"state": 1}
    assert (await agent.ask("GetState", key="mine")).state.body_json == "1"
