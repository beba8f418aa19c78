"""The store keeps what was acknowledged, whole changes only, in order."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import lmdb
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muniment.kit.errors import InternalError, LimitError, PreconditionError, UnavailableError
from muniment.kit.store import Reader, Schema, Store, Table, Writer, pack, unpack
from muniment.kit.store.store import unexpected
from muniment.kit.store.tables import CHANGES
from muniment.v1 import store_pb2
from tests.support.homes import a_folder, clean_environment
from tests.support.stores import NUMBERED, QUIET, ROWS, SCHEMA, a_store, content, texts
from tests.waiting import until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = a_store(tmp_path / "store")
    yield store
    store.close()


def put(store: Store, table: Table[store_pb2.StoredContent], *key: str | int, text: str) -> None:
    store.write(lambda writer: writer.put(table, *key, value=content(text))).result()


def put_number(number: int, writer: Writer) -> None:
    writer.put(ROWS, number, value=content("x"))


def changes(reader: Reader) -> list[tuple[str, tuple[object, ...]]]:
    """The feed: tables and keys."""
    found = list(reader.scan(CHANGES))
    assert [position for (position,), _ in found] == list(range(1, len(found) + 1))
    return [(change.table, unpack(change.key)) for _, change in found]


class StoreMachine(RuleBasedStateMachine):
    """The store beside a dictionary."""

    names = st.sampled_from(["", "a", "a\0", "a\0b", "ab", "b", "é"])
    numbers = st.integers(0, 4)
    tables = st.sampled_from([ROWS, QUIET])

    @initialize()
    def open(self) -> None:
        self.opened = ExitStack()
        self.folder = self.opened.enter_context(a_folder())
        self.store = a_store(self.folder)
        self.model: dict[str, dict[tuple[str, int], str]] = {ROWS.name: {}, QUIET.name: {}}
        self.numbered: list[str] = []
        self.feed: list[tuple[str, tuple[object, ...]]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.opened.close()

    @rule(table=tables, name=names, number=numbers, text=st.text(max_size=5))
    def put(self, table: Table[store_pb2.StoredContent], name: str, number: int, text: str) -> None:
        put(self.store, table, name, number, text=text)
        self.model[table.name][name, number] = text
        if table.in_feed:
            self.feed.append((table.name, (name, number)))

    @rule(text=st.text(max_size=5))
    def append(self, text: str) -> None:
        def change(writer: Writer) -> int:
            number = writer.last_number(NUMBERED) + 1
            writer.put(NUMBERED, number, value=content(text))
            return number

        self.numbered.append(text)
        assert self.store.write(change).result() == len(self.numbered)
        self.feed.append((NUMBERED.name, (len(self.numbered),)))

    @rule(name=names, number=numbers)
    def delete(self, name: str, number: int) -> None:
        self.store.write(lambda writer: writer.delete(QUIET, name, number)).result()
        self.model[QUIET.name].pop((name, number), None)

    @rule(table=tables, name=names, number=numbers)
    def fail(self, table: Table[store_pb2.StoredContent], name: str, number: int) -> None:
        def change(writer: Writer) -> None:
            writer.put(table, name, number, value=content("never"))
            writer.put(NUMBERED, writer.last_number(NUMBERED) + 1, value=content("never"))
            writer.delete(QUIET, name, number)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.store.write(change).result()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = a_store(self.folder)

    @rule(table=tables, name=names, number=numbers)
    def look(self, table: Table[store_pb2.StoredContent], name: str, number: int) -> None:
        model = self.model[table.name]
        with self.store.read() as reader:
            found = reader.get(table, name, number)
            below = [key for key, _ in reader.scan(table, name)]
            behind = [key for key, _ in reader.scan(table, name, after=(name, number))]
            rest = [key for key, _ in reader.scan(table, after=(name, number))]
        assert (found.text if found else None) == model.get((name, number))
        assert below == sorted(key for key in model if key[0] == name)
        assert behind == [key for key in below if key > (name, number)]
        assert rest == sorted(key for key in model if key > (name, number))

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def it_is_as_the_model(self) -> None:
        with self.store.read() as reader:
            for table in (ROWS, QUIET):
                model = self.model[table.name]
                assert list(texts(reader, table).items()) == sorted(model.items())
                assert reader.count(table) == len(model)
            assert list(texts(reader, NUMBERED).values()) == self.numbered
            assert reader.last_number(NUMBERED) == len(self.numbered)
            assert changes(reader) == self.feed


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=8, stateful_step_count=25, deadline=None)


def test_a_prefix_is_whole_parts(store: Store) -> None:
    for name in ("a", "a\0", "a\0b", "ab", ""):
        put(store, ROWS, name, 1, text=name)
    with store.read() as reader:
        for name in ("a", "a\0", ""):
            assert [key for key, _ in reader.scan(ROWS, name)] == [(name, 1)]
        assert len(list(reader.scan(ROWS))) == 5


def test_a_reader_sees_one_moment(store: Store) -> None:
    put(store, ROWS, "a", text="first")
    with store.read() as reader:
        put(store, ROWS, "a", text="second")
        put(store, ROWS, "b", text="second")
        assert texts(reader, ROWS) == {("a",): "first"}
    with store.read() as reader:
        assert texts(reader, ROWS) == {("a",): "second", ("b",): "second"}


def test_a_writer_sees_what_it_wrote_and_nobody_else_does(store: Store) -> None:
    written, may_end = threading.Event(), threading.Event()

    def change(writer: Writer) -> dict[object, str]:
        writer.put(ROWS, "a", value=content("new"))
        written.set()
        assert may_end.wait(20)
        return texts(writer, ROWS)

    future = store.write(change)
    assert written.wait(20)
    with store.read() as reader:
        assert texts(reader, ROWS) == {}
    may_end.set()
    assert future.result() == {("a",): "new"}


def test_writers_take_turns(store: Store) -> None:
    futures: list[Future[int]] = []

    def increase(writer: Writer) -> int:
        number = writer.last_number(NUMBERED) + 1
        writer.put(NUMBERED, number, value=content(threading.current_thread().name))
        return number

    def work() -> None:
        futures.extend([store.write(increase) for _ in range(20)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(futures)
    assert sorted(future.result() for future in futures) == list(range(1, 81))
    with store.read() as reader:
        assert len(set(texts(reader, NUMBERED).values())) == 1


def test_what_was_asked_for_is_written_before_it_closes(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store")
    futures = [store.write(partial(put_number, number)) for number in range(20)]
    store.close()
    assert all(future.done() for future in futures)
    store = a_store(tmp_path / "store")
    with store.read() as reader:
        assert reader.count(ROWS) == 20
    store.close()


def test_an_empty_table_has_no_last_number(store: Store) -> None:
    with store.read() as reader:
        assert reader.last_number(NUMBERED) == 0
        assert reader.count(NUMBERED) == 0
        assert list(reader.scan(NUMBERED)) == []


def test_a_full_store_says_so_and_goes_on_working(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store", map_bytes=512 * 1024)

    def fill() -> None:
        for number in range(1, 100):
            put(store, NUMBERED, number, text="x" * 50_000)

    with pytest.raises(LimitError) as full:
        fill()
    assert (full.value.reason, full.value.field) == ("STORE_FULL", "memory_map_bytes")
    with store.read() as reader:
        kept = reader.count(NUMBERED)
        assert reader.last_number(NUMBERED) == reader.last_number(CHANGES) == kept
    assert 0 < kept < 20
    put(store, QUIET, "small", text="fits")
    store.close()
    # A higher limit, as the fix says, and what was kept is there.
    store = a_store(tmp_path / "store", map_bytes=4 * 1024**2)
    put(store, NUMBERED, kept + 1, text="x" * 50_000)
    with store.read() as reader:
        assert reader.count(NUMBERED) == kept + 1
        assert texts(reader, QUIET) == {("small",): "fits"}
    store.close()


def test_a_disk_that_fails_is_told(store: Store) -> None:
    def change(writer: Writer) -> None:
        raise lmdb.DiskError("Input/output error")

    with pytest.raises(LimitError) as failed:
        store.write(change).result()
    assert failed.value.reason == "STORE_WRITE_FAILED"
    assert "Input/output error" in failed.value.message
    put(store, ROWS, "a", text="works")


def test_another_schema_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store")
    put(store, ROWS, "a", text="kept")
    store.close()
    extra: Table[store_pb2.StoredContent] = Table("extra", store_pb2.StoredContent)
    for version in (2, 4):
        with pytest.raises(PreconditionError) as refused:
            a_store(tmp_path / "store", Schema(version, (*SCHEMA.tables, extra)))
        assert refused.value.reason == "SCHEMA_UNKNOWN"
        assert "version 3" in refused.value.message
        assert f"version {version}" in refused.value.message
    with (
        lmdb.open(str(tmp_path / "store"), max_dbs=10) as raw,
        pytest.raises(lmdb.NotFoundError),
    ):
        raw.open_db(b"extra", create=False)
    store = a_store(tmp_path / "store")
    with store.read() as reader:
        assert texts(reader, ROWS) == {("a",): "kept"}
    store.close()


def test_it_says_where_and_what_it_is(store: Store, tmp_path: Path) -> None:
    assert store.path == tmp_path / "store"
    assert store.schema_version == 3
    before = store.size_bytes()
    put(store, ROWS, "a", text="x" * 100_000)
    assert store.size_bytes() >= before + 100_000


def test_it_is_private(store: Store) -> None:
    assert {one.stat().st_mode & 0o777 for one in store.path.iterdir()} == {0o600}
    assert store.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["garbage", "folder"])
def test_a_store_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    if damage == "garbage":
        (folder / "data.mdb").write_bytes(b"no database" * 1000)
    else:
        (folder / "data.mdb").mkdir()
    for _ in range(2):
        with pytest.raises(PreconditionError) as refused:
            a_store(folder)
        assert refused.value.reason == "STORE_UNREADABLE"
        assert str(folder) in refused.value.message


def test_nobody_else_opens_it_meanwhile(store: Store) -> None:
    put(store, ROWS, "a", text="kept")
    with pytest.raises(PreconditionError) as refused:
        a_store(store.path)
    assert refused.value.reason == "STORE_UNREADABLE"
    assert "another process has it open" in refused.value.message
    with store.read() as reader:
        assert texts(reader, ROWS) == {("a",): "kept"}


HOLDS = """\
import sys
from pathlib import Path
from tests.support.stores import QUIET, a_store, content

store = a_store(Path(sys.argv[1]))
store.write(lambda writer: writer.put(QUIET, "a", value=content("kept"))).result()
(Path(sys.argv[1]) / "written").touch()
sys.stdin.read()
"""


def test_one_process_alone_holds_it_until_it_dies(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)],
        env=clean_environment() | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
    ) as process:
        try:
            until((folder / "written").exists, "the other process has written")
            with pytest.raises(PreconditionError, match="another process has it open"):
                a_store(folder)
        finally:
            process.kill()
    store = a_store(folder)
    with store.read() as reader:
        assert texts(reader, QUIET) == {("a",): "kept"}
    store.close()


class Follower:
    """Takes what changed, and fails when it is told to."""

    def __init__(self) -> None:
        self.position = 0
        self.taken: list[tuple[object, ...]] = []
        self.threads: set[str] = set()
        self.failure: Exception | None = None

    def catch_up(self, reader: Reader) -> None:
        if self.failure is not None:
            raise self.failure
        self.threads.add(threading.current_thread().name)
        for (position,), change in reader.scan(CHANGES, after=(self.position,)):
            assert isinstance(position, int)
            self.taken.append(unpack(change.key))
            self.position = position


def test_a_follower_is_up_to_date_before_the_answer(store: Store) -> None:
    put(store, ROWS, "before", text="x")
    follower = Follower()
    store.follow(follower)
    assert follower.taken == [("before",)]
    put(store, ROWS, "a", text="x")
    assert follower.taken == [("before",), ("a",)]
    put(store, QUIET, "quiet", text="x")

    def change(writer: Writer) -> None:
        for key in ("b", "c", "b"):
            writer.put(ROWS, key, value=content("x"))

    store.write(change).result()
    assert follower.taken[2:] == [("b",), ("c",), ("b",)]


def test_a_follower_that_fails_loses_nothing(store: Store) -> None:
    follower = Follower()
    store.follow(follower)
    follower.failure = UnavailableError("the index is locked", reason="INDEX_UNAVAILABLE")
    with pytest.raises(UnavailableError):
        put(store, ROWS, "a", text="kept")
    with store.read() as reader:
        assert texts(reader, ROWS) == {("a",): "kept"}
    follower.failure = None
    store.write(lambda writer: None).result()
    assert follower.taken == [("a",)]


def test_a_change_that_fails_is_not_followed(store: Store) -> None:
    follower = Follower()
    store.follow(follower)

    def change(writer: Writer) -> None:
        writer.put(ROWS, "a", value=content("never"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(change).result()
    put(store, ROWS, "b", text="x")
    assert follower.taken == [("b",)]


def test_a_key_that_is_too_long_spoils_nothing(store: Store) -> None:
    with pytest.raises(ValueError, match="of 511 bytes"):
        put(store, ROWS, "x" * 600, text="x")
    put(store, ROWS, "x", text="x")


def test_a_missing_row_is_a_defect_that_names_it() -> None:
    error = unexpected(ROWS, pack("a"))
    assert isinstance(error, InternalError)
    assert error.reason == "STORE_INCONSISTENT"
    assert "rows" in error.message
