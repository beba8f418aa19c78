"""A file of records goes out and comes back; one that was cut or changed is refused."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.v1 import records_pb2
from muniment.workflows import record_files
from muniment.workflows.clients import Clients
from muniment.workflows.record_files import RecordFile, Written, check_file, write_file
from muniment.workflows.record_lines import Closing, Header, record_line
from tests.support.memory_process import a_memory_home
from tests.support.records import Tenant, entity, nothing, record_lists, time_of
from tests.waiting import until

DEADLINE_SECONDS = 30.0

_tenants = itertools.count(1)


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            yield caller.clients


def tenant(clients: Clients) -> Tenant:
    """One that nobody has used."""
    return Tenant(clients, f"tenant-{next(_tenants)}")


async def written(tenant: Tenant) -> tuple[bytes, Written]:
    lines: list[bytes] = []
    told = await write_file(
        tenant.clients,
        tenant.context,
        lines.append,
        nothing,
        exporter="muniment test",
        created_at=time_of(1),
    )
    return b"".join(lines), told


def checked(lines: bytes) -> RecordFile:
    return check_file(io.BytesIO(lines), nothing)


def test_what_goes_out_comes_back_to_the_byte() -> None:
    async def go(records: list[records_pb2.Record], clients: Clients) -> None:
        first, second = tenant(clients), tenant(clients)
        await first.take(records)
        lines, told = await written(first)
        assert told.closing.records == len(records)
        file = checked(lines)
        assert file.counts == told.counts
        taken = await second.take(file)
        assert sum(taken.taken.values()) == len(records)
        again, _ = await written(second)
        assert again.splitlines()[1:-1] == lines.splitlines()[1:-1]
        same = await second.take(file)
        assert (same.same, same.kept_total) == (len(records), 0)
        replaced = await first.take(file, replace=True)
        assert replaced.generation == 2
        last, _ = await written(first)
        assert last.splitlines()[1:-1] == lines.splitlines()[1:-1]

    with asyncio.Runner() as runner, a_memory_home() as home:
        opened = home.open_here()
        clients = runner.run(opened.__aenter__()).clients

        @settings(
            max_examples=12,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(record_lists)
        def every(records: list[records_pb2.Record]) -> None:
            runner.run(go(records, clients))

        try:
            every()
        finally:
            runner.run(opened.__aexit__(None, None, None))


async def test_order_stays(clients: Clients) -> None:
    first, second = tenant(clients), tenant(clients)
    for name in ("b", "a", "c", "b"):
        await first.call(
            "Remember", records_pb2.RememberRequest(category="x", name=name, body_json="1")
        )
        await first.call("RecordEvent", records_pb2.RecordEventRequest(kind=name, body_json="{}"))
    lines, _ = await written(first)
    await second.take(checked(lines))
    for one in (first, second):
        listed = await one.call("ListEntities", records_pb2.ListEntitiesRequest())
        assert [row.entity.name for row in listed.entities] == ["b", "c", "a"]
        journal = await one.call("ReadJournal", records_pb2.ReadJournalRequest())
        kinds = [event.acted_json.split('"')[3] for event in journal.events]
        assert kinds == ["b", "c", "a", "b"]


async def test_what_differs_here_stays(clients: Clients) -> None:
    here, there = tenant(clients), tenant(clients)
    await there.take([entity("a", "b", 1), entity("a", "c", 1)])
    await here.take([entity("a", "b", 2)])
    lines, _ = await written(there)
    told = await here.take(checked(lines))
    assert dict(told.taken) == {"entity": 1}
    assert [(one.category, one.key) for one in told.kept] == [("a", "b")]
    found = await here.call("RecallEntity", records_pb2.RecallEntityRequest(category="a", name="b"))
    assert found.entity.body_json == "2"


def _lines() -> list[bytes]:
    head = [Header("m", "t", "i", 2, time_of(1)).to_line()]
    head += [record_line(entity("a", name, [name])) for name in ("x", "y")]
    return [*head, Closing(2, 0, hashlib.sha256(b"".join(head)).digest()).to_line()]


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        (lambda lines: lines[:3], "line 4", "is missing"),
        (lambda lines: [*lines[:3], lines[3][:-1]], "line 4", "is cut"),
        (lambda lines: [*lines[:2], lines[2][:-5]], "line 3", "is cut"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], "line 4", "the lines before it"),
        (lambda lines: [lines[0], lines[1], lines[3]], "line 3", "says 2 records, and there are 1"),
        (lambda lines: [*lines, b"\n"], "line 5", "stands behind the end"),
        (lambda lines: [*lines, *lines], "line 5", "stands behind the end"),
        (lambda lines: [lines[0].replace(b'"t"', b'"u"'), *lines[1:]], "line 4", "the lines"),
    ],
)
def test_a_file_that_was_changed_is_refused(change: object, field: str, told: str) -> None:
    assert callable(change)
    with pytest.raises(InvalidArgumentError) as caught:
        checked(b"".join(change(_lines())))
    assert (caught.value.reason, caught.value.field) == ("EXPORT_DAMAGED", field)
    assert caught.value.message.startswith(told)


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "RECORD_LINE_LIMIT_BYTES", 400)
    lines = _lines()
    with pytest.raises(InvalidArgumentError, match="is longer than 400 bytes"):
        checked(b"".join([*lines[:2], b"x" * 500]))


def test_records_can_be_read_again() -> None:
    file = checked(b"".join(_lines()))
    assert [one.entity.name for one in file] == ["x", "y"]
    assert [one.entity.name for one in file] == ["x", "y"]


async def test_a_file_that_changes_meanwhile_is_told(clients: Clients) -> None:
    lines = _lines()
    file = checked(b"".join(lines))
    changed = RecordFile(
        io.BytesIO(b"".join([*lines[:2], lines[2].replace(b'"y"', b'"z"'), lines[3]])),
        file.header,
        file.closing,
        file.counts,
    )
    with pytest.raises(InvalidArgumentError) as caught:
        await tenant(clients).take(changed)
    assert caught.value.reason == "EXPORT_DAMAGED"


# --- What the service does, seen from here


async def test_a_replacement_is_alone(clients: Clients) -> None:
    one = tenant(clients)
    await one.take([entity("a", "b", 1)])
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[records_pb2.ImportRecordsRequest]:
        yield records_pb2.ImportRecordsRequest(header=records_pb2.ImportHeader(replace=True))
        await go_on.wait()
        yield records_pb2.ImportRecordsRequest(records=[entity("a", "c", 1)])

    first = clients.records.ImportRecords(
        slow(), metadata=one.context.to_metadata(), timeout=DEADLINE_SECONDS
    )
    stats = await one.call("GetRecordsStats", records_pb2.GetRecordsStatsRequest())
    following = Path(stats.store.path).parents[1] / "generation-000002"
    await asyncio.to_thread(until, following.exists, "the first is taken up")
    with pytest.raises(PreconditionError) as caught:
        await one.take([], replace=True)
    assert caught.value.reason == "REPLACEMENT_UNDER_WAY"
    go_on.set()
    await first
    listed = await one.call("ListEntities", records_pb2.ListEntitiesRequest())
    assert [row.entity.name for row in listed.entities] == ["c"]


async def test_what_was_forgotten_and_restored_has_its_name_in_the_feed(clients: Clients) -> None:
    one = tenant(clients)
    await one.take([entity("a", "b", 1)])
    forgotten = await one.call("Forget", records_pb2.ForgetRequest(category="a", name="b"))
    request = records_pb2.RestoreArchivedRequest(archive_id=forgotten.archive_id)
    back = await one.call("RestoreArchived", request)
    assert (back.id, back.category, back.name) == ("id-a-b", "a", "b")
    names = [change.name.key for change in await one.changes()]
    assert names == ["b", "b", forgotten.archive_id, forgotten.archive_id, "b"]


async def test_long_records_come_in_pages_that_messages_hold(clients: Clients) -> None:
    one = tenant(clients)
    long = "x" * (1024 * 1024 - 100)
    for number in range(6):
        await one.take([entity("a", str(number), long)])
        event = records_pb2.RecordEventRequest(kind="k", body_json=f'{{"b":"{long[:-100]}"}}')
        await one.call("RecordEvent", event)
    listed = await one.call("ListEntities", records_pb2.ListEntitiesRequest())
    assert (len(listed.entities), listed.total) == (1, 6)
    journal = await one.call("ReadJournal", records_pb2.ReadJournalRequest())
    assert len(journal.events) == 1
    for number in range(6):
        await one.call("Forget", records_pb2.ForgetRequest(category="a", name=str(number)))
    seen, cursor = [], None
    while True:
        page = await one.call("ListArchive", records_pb2.ListArchiveRequest(cursor=cursor))
        seen += [archived.entity.name for archived in page.archived]
        if not page.HasField("next_cursor"):
            break
        cursor = page.next_cursor
    assert seen == ["5", "4", "3", "2", "1", "0"]
    assert len(await one.changes()) == 24
