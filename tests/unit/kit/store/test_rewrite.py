"""A store under another key has what it had, and one that is in doubt is left alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import lmdb
import pytest

from muniment.kit.errors import LimitError, PreconditionError, TamperedError
from muniment.kit.store import Protection
from muniment.kit.store.folders import NEW_LIFE
from tests.support.small_stores import (
    NOTES,
    SEALED,
    a_full_disk,
    a_protection,
    contents,
    open_small,
    rewrite,
    write_some,
)

PLAIN = a_protection()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    store = open_small(folder)
    write_some(store)
    store.close()
    return folder


@pytest.mark.parametrize(
    "steps",
    [
        (PLAIN, SEALED),
        (PLAIN, a_protection(3)),
        (PLAIN, SEALED, a_protection(4, sealed=True), a_protection(5)),
    ],
    ids=["seal", "rotate", "and back"],
)
def test_all_of_it_is_there_under_the_new_key(folder: Path, steps: tuple[Protection, ...]) -> None:
    store = open_small(folder)
    before = contents(store)
    store.close()
    for old, new in itertools.pairwise(steps):
        rewrite(folder, old, new)
        store = open_small(folder, new)
        assert not store.doubts
        assert contents(store) == before
        store.close()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["store"]
    with pytest.raises(PreconditionError) as refused:
        open_small(folder)
    assert refused.value.reason == "STORE_KEY_OTHER"


def test_it_goes_on_where_it_was(folder: Path) -> None:
    rewrite(folder, PLAIN, SEALED)
    store = open_small(folder, SEALED)
    position = store.position
    write_some(store, 21, 30)
    assert store.position > position
    before = contents(store)
    store.close()
    rewrite(folder, SEALED, PLAIN)
    store = open_small(folder)
    assert contents(store) == before
    assert not store.doubts
    store.close()


def test_a_sealed_store_shows_nothing(folder: Path) -> None:
    assert b"text 12" in (folder / "data.mdb").read_bytes()
    rewrite(folder, PLAIN, SEALED)
    sealed = (folder / "data.mdb").read_bytes()
    for word in (b"text 12", b"note", b"nnnn", b"a test"):
        assert word not in sealed.replace(b"notes", b"")


def test_many_rows_go_in_portions_and_are_reported(folder: Path) -> None:
    store = open_small(folder)
    write_some(store, 21, 3000)
    before = contents(store)
    store.close()
    told: list[tuple[str, int, int]] = []
    rewrite(folder, PLAIN, SEALED, lambda *told_now: told.append(told_now))
    assert {step for step, _, _ in told} >= {"table texts", "table changes"}
    assert all(done <= total for _, done, total in told)
    store = open_small(folder, SEALED)
    assert contents(store) == before
    store.close()


def test_a_life_that_is_to_begin_still_begins(folder: Path) -> None:
    (folder / NEW_LIFE).touch()
    rewrite(folder, PLAIN, SEALED)
    assert (folder / NEW_LIFE).exists()


def damage(folder: Path, table: str, change: str) -> None:
    with (
        lmdb.open(str(folder), max_dbs=20) as environment,
        environment.begin(write=True) as transaction,
        transaction.cursor(db=environment.open_db(table.encode(), txn=transaction)) as cursor,
    ):
        assert cursor.last()
        if change == "edit":
            value = bytearray(cursor.value())
            value[len(value) // 2] ^= 1
            cursor.put(bytes(cursor.key()), bytes(value))
        else:
            cursor.delete()


@pytest.mark.parametrize("change", ["edit", "delete"])
@pytest.mark.parametrize("table", ["texts", "notes", "names", "changes", "meta"])
def test_one_in_doubt_is_left_alone(folder: Path, table: str, change: str) -> None:
    damage(folder, table, change)
    damaged = (folder / "data.mdb").read_bytes()
    with pytest.raises((TamperedError, PreconditionError)) as refused:
        rewrite(folder, PLAIN, SEALED)
    assert refused.value.fix is not None
    assert (folder / "data.mdb").read_bytes() == damaged
    assert sorted(path.name for path in folder.parent.iterdir()) == ["store"]


def test_an_older_row_that_was_put_back_is_found(folder: Path) -> None:
    address = PLAIN.address("note", "1")
    with (
        lmdb.open(str(folder), max_dbs=20) as environment,
        environment.begin(write=True) as transaction,
    ):
        database = environment.open_db(NOTES.name.encode(), txn=transaction)
        older = transaction.get(address, db=database)
    assert older is not None
    store = open_small(folder)
    write_some(store, 1, 8)
    store.close()
    with (
        lmdb.open(str(folder), max_dbs=20) as environment,
        environment.begin(write=True) as transaction,
    ):
        database = environment.open_db(NOTES.name.encode(), txn=transaction)
        transaction.put(address, bytes(older), db=database)
    with pytest.raises(TamperedError):
        rewrite(folder, PLAIN, SEALED)


@pytest.mark.parametrize("wrong", [a_protection(9), a_protection(1, sealed=True)])
def test_the_old_key_must_be_the_stores(folder: Path, wrong: Protection) -> None:
    with pytest.raises(PreconditionError) as refused:
        rewrite(folder, wrong, SEALED)
    assert refused.value.reason == "STORE_KEY_OTHER"


def test_a_full_disk_changes_nothing(folder: Path) -> None:
    before = (folder / "data.mdb").read_bytes()
    with a_full_disk(after_bytes=16 * 1024), pytest.raises(LimitError) as refused:
        rewrite(folder, PLAIN, SEALED)
    assert "nothing was changed" in str(refused.value)
    assert (folder / "data.mdb").read_bytes() == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["store"]
