"""The store: batches, answers, growth, opening again."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as all_done
from pathlib import Path
from typing import Any

import lmdb
import pytest

from muniment.kit.errors import LimitError, PreconditionError, UnavailableError
from muniment.kit.store import Reader, Schema, Store, StoreOptions, Table, Writer
from muniment.kit.store.schemas import peek_schema
from muniment.v1 import store_pb2
from tests.support.rows import scan
from tests.support.stores import (
    EVENTS,
    NOTES,
    SCHEMA,
    QuickDisk,
    Stepped,
    demand_sound,
    protection,
    text,
)

SECONDS = 20.0
KIB = 1024


@pytest.fixture
def stepped(tmp_path: Path) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store")
    yield opened
    demand_sound(opened.store)
    opened.close()


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[Store]:
    options = StoreOptions(map_limit_bytes=64 * KIB**2, disk=QuickDisk())
    store = Store(tmp_path / "threaded", SCHEMA, protection(), options)
    yield store
    store.close()


def append(value: str = "e") -> Callable[[Writer], int]:
    def change(writer: Writer) -> int:
        number = writer.next_number(EVENTS)
        writer.put(EVENTS, number, value=text(value))
        return number

    return change


class WatchedFollower:
    """Notes how far the store was each time it was brought up to date."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.failure: Exception | None = None

    def catch_up(self, read: Callable[[], Any]) -> None:
        if self.failure is not None:
            raise self.failure
        with read() as reader:
            self.positions.append(reader.state().position)


# --- Batches


def test_a_batch_runs_in_the_order_in_which_it_was_asked_for(stepped: Stepped) -> None:
    futures = [stepped.store.write(append()) for _ in range(10)]
    stepped.step()
    assert [future.result(0) for future in futures] == list(range(1, 11))


def test_what_was_cancelled_before_its_turn_does_not_run(stepped: Stepped) -> None:
    first, second, third = (stepped.store.write(append()) for _ in range(3))
    assert second.cancel()
    stepped.step()
    assert (first.result(0), third.result(0)) == (1, 2)
    assert stepped.store.position == 2
    assert second.cancelled()


def test_what_has_begun_cannot_be_cancelled(stepped: Stepped) -> None:
    future = stepped.store.write(append())
    stepped.loop.commit_batch()
    assert not future.cancel()
    stepped.loop.follow_batch()
    assert future.result(0) == 1


def test_a_batch_of_cancelled_changes_is_no_commit(stepped: Stepped) -> None:
    assert stepped.store.write(append()).cancel()
    stepped.step()
    assert stepped.store.position == 0


@pytest.mark.parametrize(
    "failure",
    [ValueError("a defect"), lmdb.BadValsizeError("put", -30781), MemoryError("no more")],
    ids=lambda failure: type(failure).__name__,
)
def test_a_failing_change_does_not_hurt_its_batch(stepped: Stepped, failure: Exception) -> None:
    def fail(writer: Writer) -> int:
        append()(writer)
        raise failure

    futures: list[Future[int]] = [stepped.store.write(append()), stepped.store.write(fail)]
    futures += [stepped.store.write(append()) for _ in range(3)]
    stepped.step()
    assert [future.exception(0) is None for future in futures] == [True, False, True, True, True]
    assert [future.result(0) for future in futures if not future.exception(0)] == [1, 2, 3, 4]
    assert stepped.store.position == 4


def test_keys_that_lmdb_refuses_fail_alone(stepped: Stepped) -> None:
    empty = stepped.store.write(lambda writer: writer.put(NOTES, value=text("no key")))
    good = stepped.store.write(lambda writer: writer.put(NOTES, "a", value=text("a")))
    stepped.step()
    assert isinstance(empty.exception(0), LimitError)
    assert good.exception(0) is None


# --- Followers


def test_an_answer_comes_after_every_follower(stepped: Stepped) -> None:
    first, second = WatchedFollower(), WatchedFollower()
    stepped.store.follow(first)
    stepped.put(NOTES, "a", value="a")
    stepped.store.follow(second)
    stepped.run(append())
    assert (first.positions, second.positions) == ([0, 1, 2], [1, 2])


def test_when_a_follower_fails_the_change_is_kept_and_the_answer_says_so(stepped: Stepped) -> None:
    follower = WatchedFollower()
    stepped.store.follow(follower)
    follower.failure = UnavailableError("is full", reason="INDEX_UNAVAILABLE")
    future = stepped.store.write(append())
    stepped.step()
    assert future.exception(0) is follower.failure
    assert stepped.store.position == 1
    follower.failure = None
    assert stepped.run(append()) == 2


# --- Growth


def test_the_map_grows_and_no_change_is_lost(tmp_path: Path) -> None:
    stepped = Stepped(tmp_path / "store", first_map_bytes=256 * KIB)
    futures = []
    for number in range(400):
        futures.append(stepped.store.write(append("x" * 4000)))
        if number % 40 == 0:
            stepped.step()
    stepped.step()
    assert [future.result(0) for future in futures] == list(range(1, 401))
    assert stepped.store.size_bytes() > 1024 * KIB
    demand_sound(stepped.store)
    stepped.close()


def test_the_map_grows_while_others_read(tmp_path: Path) -> None:
    options = StoreOptions(map_limit_bytes=64 * KIB**2, first_map_bytes=256 * KIB, disk=QuickDisk())
    store = Store(tmp_path / "store", SCHEMA, protection(), options)
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        # With a pause: a reader that never rests may keep the interpreter to itself.
        while not done.wait(0.0005):
            with store.read() as reader:
                newest = reader.last_number(EVENTS)
                assert newest == 0 or reader.get(EVENTS, newest) is not None
                seen.append(newest)

    readers = [threading.Thread(target=read)]
    for thread in readers:
        thread.start()
    futures = [store.write(append("x" * 20_000)) for _ in range(60)]
    all_done(futures, SECONDS)
    done.set()
    for thread in readers:
        thread.join(SECONDS)
    assert [future.result(0) for future in futures] == list(range(1, 61))
    demand_sound(store)
    store.close()


def test_at_its_limit_the_store_says_so_keeps_what_fits_and_reads_on(tmp_path: Path) -> None:
    limit = 512 * KIB
    stepped = Stepped(tmp_path / "store", map_limit_bytes=limit)
    stepped.put(NOTES, "a", value="a")
    big = stepped.store.write(append("x" * limit))
    small = stepped.store.write(append("small"))
    stepped.step()
    error = big.exception(0)
    assert isinstance(error, LimitError)
    assert (error.reason, error.field) == ("STORE_FULL", "memory_map_bytes")
    assert str(limit) in error.message
    assert small.result(0) == 1
    full = None
    while full is None:
        future = stepped.store.write(append("x" * 9000))
        stepped.step()
        full = future.exception(0)
    assert getattr(full, "reason", None) == "STORE_FULL"
    assert stepped.rows(NOTES) == {("a",): "a"}
    kept = stepped.rows(EVENTS)
    stepped.close()
    # With more room it goes on where it was.
    wider = Stepped(tmp_path / "store", map_limit_bytes=4 * limit)
    assert wider.rows(EVENTS) == kept
    assert wider.run(append("x" * limit)) == len(kept) + 1
    demand_sound(wider.store)
    wider.close()


def test_a_limit_below_what_is_used_stops_writers_only(tmp_path: Path) -> None:
    stepped = Stepped(tmp_path / "store")
    stepped.run(append("x" * 600 * KIB))
    stepped.close()
    narrow = Stepped(tmp_path / "store", map_limit_bytes=256 * KIB)
    assert len(narrow.rows(EVENTS)) == 1
    future = narrow.store.write(append("x" * 600 * KIB))
    narrow.step()
    assert getattr(future.exception(0), "reason", None) == "STORE_FULL"
    narrow.close()


# --- Life


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_a_store_opens_as_it_was_left(tmp_path: Path, sealed: bool) -> None:
    before = Stepped(tmp_path / "store", sealed=sealed)
    before.put(NOTES, "a", value="a")
    before.run(append())
    facts = before.store.incarnation, before.store.position, before.rows(NOTES)
    before.close()
    after = Stepped(tmp_path / "store", sealed=sealed)
    assert (after.store.incarnation, after.store.position, after.rows(NOTES)) == facts
    assert after.store.doubts == []
    assert after.run(append()) == 2
    demand_sound(after.store)
    after.close()


def test_every_store_has_an_identity_of_its_own(tmp_path: Path) -> None:
    stores = [Stepped(tmp_path / name) for name in "ab"]
    seeds = {stepped.store.incarnation for stepped in stores}
    assert all(len(one) == 32 for one in seeds)
    for stepped in stores:
        stepped.close()


@pytest.mark.parametrize("other", ["key", "seal"])
def test_another_key_is_refused(tmp_path: Path, other: str) -> None:
    Stepped(tmp_path / "store").close()
    key = protection(key=b"o" * 32) if other == "key" else protection(sealed=True)
    with pytest.raises(PreconditionError) as caught:
        Store(tmp_path / "store", SCHEMA, key, StoreOptions(KIB**2, disk=QuickDisk()))
    assert caught.value.reason == "STORE_KEY_OTHER"
    Stepped(tmp_path / "store").close()


@pytest.mark.parametrize("version", [SCHEMA.version - 1, SCHEMA.version + 1])
def test_another_schema_version_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "store"
    first = Stepped(folder)
    first.put(NOTES, "a", value="kept")
    first.close()
    before = (folder / "data.mdb").read_bytes()
    extra: Table[store_pb2.StoredContent] = Table("extra", store_pb2.StoredContent)
    with pytest.raises(PreconditionError) as refused:
        Stepped(folder, schema=Schema(version, (*SCHEMA.tables, extra)))
    assert refused.value.reason == "SCHEMA_UNKNOWN"
    assert f"version {SCHEMA.version}" in refused.value.message
    assert f"version {version}" in refused.value.message
    assert (folder / "data.mdb").read_bytes() == before
    with lmdb.open(str(folder), max_dbs=10) as raw, pytest.raises(lmdb.NotFoundError):
        raw.open_db(b"extra", create=False)
    again = Stepped(folder)
    assert again.rows(NOTES) == {("a",): "kept"}
    again.close()


@pytest.mark.parametrize("damage", ["garbage", "folder"])
def test_a_store_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    if damage == "garbage":
        (folder / "data.mdb").write_bytes(b"rubbish" * 4096)
    else:
        (folder / "data.mdb").mkdir()
    # The second time shows that the first left nothing open.
    for _ in range(2):
        with pytest.raises(PreconditionError) as refused:
            Stepped(folder)
        assert refused.value.reason == "STORE_UNREADABLE"
        assert str(folder) in refused.value.message


def test_a_store_that_was_cut_short_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    stepped = Stepped(folder)
    for number in range(40):
        stepped.put(NOTES, str(number), value="x" * 100_000)
    stepped.close()
    os.truncate(folder / "data.mdb", 1_000_000)
    with pytest.raises(PreconditionError, match="cut short") as refused:
        Stepped(folder)
    assert refused.value.reason == "STORE_UNREADABLE"
    with pytest.raises(PreconditionError, match="cut short"):
        peek_schema(folder)


def test_a_small_store_that_was_cut_short_does_not_end_the_process(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    stepped = Stepped(folder)
    for number in range(20):
        stepped.put(NOTES, str(number), value="x" * 1000)
    stepped.close()
    whole = (folder / "data.mdb").read_bytes()
    for size in range(8192, len(whole), 4096):
        (folder / "data.mdb").write_bytes(whole[:size])
        try:
            peek_schema(folder)
            opened = Stepped(folder)
        except PreconditionError as refused:
            assert refused.reason == "STORE_UNREADABLE"  # noqa: PT017 - both outcomes are right
        else:
            opened.close()


def test_nobody_opens_it_a_second_time_and_the_first_goes_on(stepped: Stepped) -> None:
    stepped.put(NOTES, "a", value="kept")
    with pytest.raises(PreconditionError) as refused:
        Stepped(stepped.store.path)
    assert refused.value.reason == "STORE_UNREADABLE"
    stepped.put(NOTES, "b", value="kept")
    assert stepped.rows(NOTES) == {("a",): "kept", ("b",): "kept"}


def test_it_says_where_and_how_large_it_is(stepped: Stepped, tmp_path: Path) -> None:
    assert stepped.store.path == tmp_path / "store"
    before = stepped.store.size_bytes()
    stepped.put(NOTES, "a", value="x" * 100_000)
    assert stepped.store.size_bytes() >= before + 100_000


def test_closing_finishes_what_was_asked_for(tmp_path: Path, threaded: Store) -> None:
    futures = [threaded.write(append()) for _ in range(100)]
    threaded.close()
    assert [future.result(0) for future in futures] == list(range(1, 101))
    with pytest.raises(UnavailableError) as caught:
        threaded.write(append())
    assert caught.value.reason == "STORE_CLOSING"


def test_writers_of_many_threads_take_turns_in_one(threaded: Store) -> None:
    def write() -> list[Future[tuple[int, str]]]:
        return [
            threaded.write(lambda writer: (append()(writer), threading.current_thread().name))
            for _ in range(20)
        ]

    with ThreadPoolExecutor(4) as pool:
        futures = [one for some in [pool.submit(write) for _ in range(4)] for one in some.result()]
    outcomes = [future.result(SECONDS) for future in futures]
    assert sorted(number for number, _ in outcomes) == list(range(1, 81))
    assert len({name for _, name in outcomes}) == 1
    with threaded.read() as reader:
        assert reader.count(EVENTS) == reader.last_number(EVENTS) == 80


def rewrite(writer: Writer) -> None:
    for name in "ab":
        writer.put(NOTES, name, value=text(str(writer.next_number(EVENTS))))


def demand_one_moment(reader: Reader) -> None:
    rows = {key: row.text for key, row in scan(reader, NOTES)}
    assert set(rows) <= {("a",), ("b",)}
    for name in "ab":
        assert (reader.get(NOTES, name) is None) == ((name,) not in rows)


def test_readers_and_writers_in_many_threads(threaded: Store) -> None:
    def write() -> None:
        for number in range(60):
            threaded.write(rewrite).result(SECONDS)
            if number % 3 == 0:
                threaded.write(lambda writer: writer.delete(NOTES, "b")).result(SECONDS)

    def read() -> None:
        for _ in range(150):
            with threaded.read() as reader:
                for _ in range(3):
                    demand_one_moment(reader)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for work in (write, write, read, read)]:
            done.result(3 * SECONDS)
    demand_sound(threaded)
