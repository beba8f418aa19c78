"""A copy takes the place of the store's files, with what was written while it was made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pytest

from muniment.kit import faults
from muniment.kit.errors import LimitError
from muniment.kit.store import Store, StoreOptions, Writer
from muniment.kit.store import compaction as compaction_module
from muniment.kit.store.disk import Disk
from muniment.kit.store.journal import Journal
from tests.support.rows import scan
from tests.support.stores import (
    EVENTS,
    LOOSE,
    NOTES,
    SCHEMA,
    QuickDisk,
    demand_sound,
    protection,
    text,
)

SECRET = "quixotic"


def open_store(folder: Path, *, sealed: bool = False, disk: Disk | None = None) -> Store:
    options = StoreOptions(map_limit_bytes=1 << 28, disk=disk or QuickDisk())
    return Store(folder / "store", SCHEMA, protection(sealed=sealed), options)


def quiet(step: str, done: int, total: int) -> None:
    """Nobody listens."""


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path, sealed=request.param)
    yield opened
    opened.close()


def fill(store: Store, rows: int = 60) -> None:
    """Rows of all lengths, of which every third is taken away again."""

    def write(writer: Writer) -> None:
        for number in range(rows):
            writer.put(LOOSE, number, value=text(f"{SECRET} " + "x" * (number * 97 % 6000)))
            writer.put(NOTES, f"n{number}", value=text(f"{number}"))
        for number in range(0, rows, 3):
            writer.put(LOOSE, number, value=text("fine"))
            writer.delete(NOTES, f"n{number}")
        for number in range(1, rows, 3):
            writer.delete(LOOSE, number)
        for number in range(2, rows, 3):
            writer.put(LOOSE, number, value=text("fine " + "y" * 3000))

    store.write(write).result()


def _put_event(writer: Writer, *, number: int) -> None:
    writer.put(EVENTS, number, value=text("x"))


def contents(store: Store) -> list[tuple[str, Any, Any]]:
    with store.read() as reader:
        return [
            (table.name, key, value)
            for table in store.schema.all_tables()
            if table.name != "meta"
            for key, value in scan(reader, table)
        ]


def test_all_that_there_is_stays(store: Store, tmp_path: Path) -> None:
    fill(store)
    before, life = contents(store), (store.incarnation, store.position)
    store.compact(quiet)
    assert contents(store) == before
    assert (store.incarnation, store.position) == life
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert not store.doubts
    store.write(lambda writer: writer.put(NOTES, "on", value=text("it goes"))).result()
    demand_sound(store)


def test_what_was_deleted_stands_on_no_page(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    data = tmp_path / "store" / "data.mdb"
    fill(store)
    assert SECRET.encode() in data.read_bytes()
    store.compact(quiet)
    assert SECRET.encode() not in data.read_bytes()
    store.close()


def test_what_is_written_meanwhile_is_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_module, "_PORTION_BYTES", 500)
    fill(store)
    steps: list[int] = []

    def write(step: str, done: int, total: int) -> None:
        number = len(steps)
        steps.append(done)

        def change(writer: Writer) -> None:
            # Where the copy was already, where it is, and where it will be.
            writer.put(EVENTS, number, value=text(f"event {number}"))
            writer.put(LOOSE, 1000 + number, value=text(f"loose {number}"))
            writer.put(NOTES, f"a{number}", value=text(f"{number}"))
            writer.delete(NOTES, f"a{number - 1}")
            writer.delete(LOOSE, number)

        store.write(change).result()

    store.compact(write)
    assert len(steps) > 20
    assert steps == sorted(steps)
    with store.read() as reader:
        assert reader.count(EVENTS) == len(steps)
        assert [key for key, _ in scan(reader, NOTES, "a0")] == []
        last = reader.get(LOOSE, 1000 + len(steps) - 1)
        assert last is not None
        assert last.text == f"loose {len(steps) - 1}"
    demand_sound(store)


def test_readers_and_writers_go_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_module, "_PORTION_BYTES", 500)
    fill(store)
    ended = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not ended.is_set():
            number = len(written)
            store.write(partial(_put_event, number=number)).result()
            written.append(number)
            with store.read() as reader:
                assert reader.get(EVENTS, number) is not None

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    for _ in range(3):
        store.compact(quiet)
    ended.set()
    thread.join()
    with store.read() as reader:
        assert [key for key, _ in scan(reader, EVENTS)] == [(number,) for number in written]
    demand_sound(store)


class _FullDisk(QuickDisk):
    """Has no room for a second store, when it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_at: int | None = None

    def committing(self, environment: lmdb.Environment) -> None:
        if self.fails_at is not None and environment.path().endswith(".building"):
            self.fails_at -= 1
            if self.fails_at < 0:
                raise OSError(28, "No space left on device")


@pytest.mark.parametrize("fails_at", [0, 1, 5])
def test_where_the_disk_is_full_all_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    monkeypatch.setattr(compaction_module, "_PORTION_BYTES", 20_000)
    disk = _FullDisk()
    store = open_store(tmp_path, disk=disk)
    fill(store)
    before = contents(store)
    disk.fails_at = fails_at
    with pytest.raises(LimitError) as caught:
        store.compact(quiet)
    assert caught.value.reason == "STORE_COPY_FAILED"
    disk.fails_at = None
    assert contents(store) == before
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    store.write(lambda writer: writer.put(NOTES, "on", value=text("it goes"))).result()
    demand_sound(store)
    store.compact(quiet)
    demand_sound(store)
    store.close()


@pytest.mark.parametrize("point", ["compaction.copied", "swap.ready", "swap.moved", "swap.done"])
def test_after_an_error_at_any_moment_the_store_is_there(store: Store, point: str) -> None:
    fill(store)
    before = contents(store)

    def fail(reached: str) -> None:
        if reached == point:
            raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "reach", fail)
        with pytest.raises(ZeroDivisionError):
            store.compact(quiet)
    assert contents(store) == before
    store.write(lambda writer: writer.put(NOTES, "on", value=text("it goes"))).result()
    demand_sound(store)
    assert store.path.exists()


def test_a_copy_that_is_given_up_leaves_nothing(store: Store, tmp_path: Path) -> None:
    fill(store)

    def give_up(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.compact(give_up)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    demand_sound(store)


def test_a_journal_notes_between_its_beginning_and_its_end() -> None:
    journal = Journal()
    journal.note("notes", b"before")
    journal.begin()
    journal.note("notes", b"a")
    journal.note("notes", b"a")
    assert journal.end() == {("notes", b"a")}
    journal.note("notes", b"after")
    assert journal.end() == set()
