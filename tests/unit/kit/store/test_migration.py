"""A store of a version that only lacks tables goes on as one of the present version."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from muniment.kit.errors import LimitError, PreconditionError
from muniment.kit.store import Protection, Store, StoreOptions, Table
from muniment.kit.store import migration as migrations
from muniment.kit.store.folders import NEW_LIFE
from muniment.kit.store.migration import open_store
from muniment.kit.store.schemas import peek_schema
from muniment.v1 import store_pb2
from tests.support.crashes import Crash, dying_at
from tests.support.seams import FakeClock
from tests.support.stores import NOTES, SCHEMA, QuickDisk, Stepped, demand_sound, protection, text

EXTRA: Table[store_pb2.StoredContent] = Table("extra", store_pb2.StoredContent)
GROWN = replace(
    SCHEMA,
    version=SCHEMA.version + 1,
    tables=(*SCHEMA.tables, EXTRA),
    grown_from=frozenset({SCHEMA.version}),
)


def fill(folder: Path, *, sealed: bool = False) -> tuple[str, int]:
    """A store of the earlier version; its incarnation and position."""
    with closing(Stepped(folder, sealed=sealed)) as stepped:
        stepped.put(NOTES, "a", value="first")
        stepped.put(NOTES, "a", value="kept")
        return stepped.store.incarnation, stepped.store.position


def grown(folder: Path, by: Protection | None = None) -> Store:
    """The store as the present program opens it."""
    options = StoreOptions(map_limit_bytes=16 * 1024**2, disk=QuickDisk(), clock=FakeClock())
    return open_store(folder, GROWN, {}, by or protection(), options)


def note(store: Store) -> str:
    with store.read() as reader:
        found = reader.get(NOTES, "a")
        assert found is not None
        return found.text


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_it_goes_on_with_more_tables_and_the_old_one_is_kept(tmp_path: Path, sealed: bool) -> None:
    folder = tmp_path / "store"
    life = fill(folder, sealed=sealed)
    before = (folder / "data.mdb").read_bytes()
    with closing(grown(folder, protection(sealed=sealed))) as store:
        assert (store.incarnation, store.position) == life
        assert note(store) == "kept"
        store.write(lambda writer: writer.put(EXTRA, 1, value=text("new"))).result()
        demand_sound(store)
    (kept,) = set(tmp_path.iterdir()) - {folder}
    assert kept.name.startswith(f"store.v{SCHEMA.version}-")
    assert (kept / "data.mdb").read_bytes() == before
    with closing(grown(folder, protection(sealed=sealed))) as store, store.read() as reader:
        assert reader.get(EXTRA, 1) == text("new")
    assert set(tmp_path.iterdir()) == {folder, kept}
    with pytest.raises(PreconditionError, match=f"schema version {GROWN.version}"):
        Stepped(folder)


def test_one_that_was_restored_begins_its_new_life(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    incarnation, position = fill(folder)
    (folder / NEW_LIFE).touch()
    with closing(grown(folder, protection(seed=2))) as store:
        assert store.incarnation != incarnation
        assert store.position == position
    assert not (folder / NEW_LIFE).exists()


def test_one_of_another_key_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    fill(folder)
    with pytest.raises(PreconditionError) as refused:
        grown(folder, protection(key=b"o" * 32))
    assert refused.value.reason == "STORE_KEY_OTHER"
    assert list(tmp_path.iterdir()) == [folder]
    stored = peek_schema(folder)
    assert stored is not None
    assert stored.version == SCHEMA.version


def test_it_stays_as_it_was_where_the_copy_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    fill(folder)

    def full(source: Path, target: Path, report: Callable[[int], None]) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "copy_file", full)
        with pytest.raises(LimitError) as refused:
            grown(folder)
    assert refused.value.reason == "STORE_COPY_FAILED"
    assert list(tmp_path.iterdir()) == [folder]
    with closing(Stepped(folder)) as stepped:
        assert stepped.rows(NOTES) == {("a",): "kept"}


@pytest.mark.parametrize("point", ["swap.ready", "swap.moved", "swap.done"])
def test_after_a_crash_there_is_the_one_or_the_other(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "store"
    life = fill(folder)
    with dying_at(point), pytest.raises(Crash):
        grown(folder)
    with closing(grown(folder)) as store:
        assert (store.incarnation, store.position) == life
        assert note(store) == "kept"
    assert [one.name[:8] for one in tmp_path.iterdir() if one != folder] == ["store.v3"]
