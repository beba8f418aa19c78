"""A stranger writes to a tenant's files: nothing of it passes for good, and one can go on writing.

Each table is changed row by row, by plain LMDB in another process, while the service runs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from muniment.kit.errors import MunimentError, NotFoundError, TamperedError
from muniment.kit.index.dense_vectors import VECTORS
from muniment.memory.records.schema import SCHEMA
from muniment.v1 import records_pb2 as pb
from tests.support import tamper
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records
from tests.support.tamper import Operation, Rows

pytestmark = pytest.mark.timeout(120)

TABLES = [table.name for table in SCHEMA.tables if table is not VECTORS]

Make = Callable[[str, Rows, Rows], Iterator[list[Operation]]]


@pytest.fixture(autouse=True)
def _no_logs() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


def _flip(table: str, old: Rows, new: Rows) -> Iterator[list[Operation]]:
    """Turn a bit in the middle of each row, where a value is."""
    for key, row in new[table].items():
        middle = len(row) // 4 * 2
        yield [(table, key, f"{row[:middle]}{int(row[middle], 16) ^ 1:x}{row[middle + 1 :]}")]


def _delete(table: str, old: Rows, new: Rows) -> Iterator[list[Operation]]:
    for key in new[table]:
        yield [(table, key, None)]


def _swap(table: str, old: Rows, new: Rows) -> Iterator[list[Operation]]:
    keys = list(new[table])
    for one, other in itertools.pairwise(keys):
        yield [(table, one, new[table][other]), (table, other, new[table][one])]


def _older(table: str, old: Rows, new: Rows) -> Iterator[list[Operation]]:
    """Put rows back that were overwritten or taken away."""
    for key, row in old[table].items():
        if new[table].get(key) != row:
            yield [(table, key, row)]


def _whole(table: str, old: Rows, new: Rows) -> Iterator[list[Operation]]:
    """Make the whole table what it was."""
    gone = [(table, key, None) for key in new[table].keys() - old[table].keys()]
    back = [(table, key, row) for key, row in old[table].items() if new[table].get(key) != row]
    if gone or back:
        yield [*gone, *back]


ATTACKS: Mapping[str, Make] = {
    "flip": _flip,
    "delete": _delete,
    "swap": _swap,
    "older": _older,
    "whole": _whole,
}


@dataclass
class Seen:
    """What an agent gets to see."""

    values: dict[str, str] = field(default_factory=dict)
    """By what it is of."""
    listed: dict[str, int] = field(default_factory=dict)
    """How many of each list."""
    told: set[str] = field(default_factory=set)
    """Reads that say that something is amiss."""


async def _see(agent: Agent) -> Seen:
    seen = Seen()
    for name in ("alice", "bob", "gone"):
        await _point(seen, f"entity {name}", agent.entity("people", name))
    for key in ("focus", "plan"):
        await _point(seen, f"state {key}", agent.ask("GetState", key=key))
    await _point(seen, "reference doc", agent.ask("GetReference", key="doc"))
    await _list(seen, agent, "ListEntities", "entities")
    await _list(seen, agent, "ListEntities", "entities", category="people")
    await _list(seen, agent, "ListArchive", "archived")
    await _list(seen, agent, "ListStates", "states")
    await _list(seen, agent, "ListReferences", "references")
    await _list(seen, agent, "ReadJournal", "events")
    await _list(seen, agent, "SearchRecords", "hits", query="genuine")
    try:
        exported, end = await agent.export()
    except TamperedError:
        seen.told.add("export")
    else:
        seen.listed["export"] = len(exported)
        for one in exported:
            seen.values[f"export {one!s:.60}"] = str(one)
        if end.tampered:
            seen.told.add("export")
    try:
        if (await agent.stats()).doubts:
            seen.told.add("stats")
    except TamperedError:
        seen.told.add("stats")
    return seen


async def _point(seen: Seen, what: str, asked: Any) -> None:
    try:
        seen.values[what] = str(await asked)
    except TamperedError:
        seen.told.add(what)
    except NotFoundError:
        seen.values[what] = ""


async def _list(seen: Seen, agent: Agent, method: str, rows: str, **fields: Any) -> None:
    what = f"{method} {fields}"
    try:
        response = await agent.ask(method, **fields)
    except TamperedError:
        seen.told.add(what)
        return
    found = getattr(response, rows)
    seen.listed[what] = len(found)
    for one in found:
        seen.values[f"{what} {one!s}"] = "shown"
    if response.tampered or getattr(response, "doubts", None):
        seen.told.add(what)


async def _fill(agent: Agent) -> None:
    for name in ("alice", "bob", "gone"):
        await agent.remember("people", name, json.dumps(f"genuine {name}"))
    for key in ("focus", "plan"):
        await agent.ask("SetState", key=key, body_json=json.dumps(f"genuine {key}"))
    await agent.ask("PutReference", key="doc", body="genuine text")
    for number in range(2):
        await agent.ask("RecordEvent", kind="k", body_json=json.dumps({"genuine": number}))


async def _change(agent: Agent) -> None:
    await agent.remember("people", "alice", '"genuine new alice"')
    await agent.forget("people", "gone")
    await agent.remember("people", "carol", '"genuine carol"')
    await agent.forget("people", "carol")
    await agent.ask("SetState", key="focus", body_json='"genuine new focus"')
    await agent.ask("PutReference", key="doc", body="genuine new text")
    await agent.ask("RecordEvent", kind="k", body_json='{"genuine":"late"}')


async def _apply(folder: Path, operations: list[Operation]) -> None:
    def run() -> None:
        command = [sys.executable, tamper.__file__, "apply", str(folder)]
        subprocess.run(command, input=json.dumps(operations), check=True, text=True)

    await asyncio.to_thread(run)


async def _rows(folder: Path) -> Rows:
    command = [sys.executable, tamper.__file__, "dump", str(folder)]
    ran = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    rows: Rows = json.loads(ran.stdout)
    return rows


def _files(records: Records, agent: Agent) -> Path:
    return next(records.generation(agent).folder.rglob("data.mdb")).parent


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("table", TABLES)
async def test_nothing_changed_passes_for_good(table: str, attack: str) -> None:
    with a_home() as home:
        async with a_records(home) as records:
            agent = records.agent()
            await _fill(agent)
            folder = _files(records, agent)
            old = await _rows(folder)
            await _change(agent)
            new = await _rows(folder)
            good = await _see(agent)
            assert good.told == set()
            for operations in list(ATTACKS[attack](table, old, new))[:6]:
                await _apply(folder, operations)
                _demand(good, await _see(agent), operations)
                await _apply(
                    folder, [(name, key, new[name].get(key)) for name, key, _ in operations]
                )
            assert await _see(agent) == good


def _demand(good: Seen, seen: Seen, operations: list[Operation]) -> None:
    for what, value in seen.values.items():
        assert good.values.get(what) == value, (what, value, operations)
    for what, count in seen.listed.items():
        if count != good.listed[what]:
            assert seen.told, (what, count, operations)


@pytest.mark.parametrize("attack", ["flip", "delete"])
@pytest.mark.parametrize("table", TABLES)
async def test_one_can_go_on_writing(table: str, attack: str) -> None:
    with a_home() as home:
        async with a_records(home, cap_bytes=1_000_000) as records:
            agent = records.agent()
            await _fill(agent)
            folder = _files(records, agent)
            rows = await _rows(folder)
            operations = [one for some in ATTACKS[attack](table, rows, rows) for one in some]
            await _apply(folder, operations)
            await agent.remember("people", "alice", '"again"')
            await agent.remember("people", "new", '"new"')
            await agent.ask("SetState", key="focus", body_json='"again"')
            await agent.ask("PutReference", key="doc", body="again")
            event = await agent.ask("RecordEvent", kind="k", body_json='{"a":"again"}')
            for name, body in (("alice", "again"), ("new", "new")):
                assert (await agent.entity("people", name)).body_json == f'{{"value":"{body}"}}'
            state = (await agent.ask("GetState", key="focus")).state
            assert state.body_json == '{"value":"again"}'
            assert (await agent.ask("GetReference", key="doc")).reference.body == "again"
            newest = (await agent.ask("ReadJournal", limit=1)).events
            assert [one.id for one in newest] == [event.event_id]
            listed = (await agent.ask("ListEntities", limit=1)).entities
            assert [one.entity.name for one in listed] == ["new"]
            try:
                await agent.forget("people", "new")
            except MunimentError as error:
                pytest.fail(f"forgetting failed: {error}")
            assert (await agent.stats()).used_bytes < 1_000_000
            alice = pb.RecordName(kind=pb.RECORD_KIND_ENTITY, category="people", key="alice")
            now = await agent.ask("ReadRecordAt", name=alice, position=await agent.position())
            assert now.record.entity.body_json == '{"value":"again"}'
