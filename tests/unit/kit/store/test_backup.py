"""A store is copied while it is written, and a copy is examined before it is brought back."""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import lmdb
import pytest

from muniment.kit.errors import (
    InvalidArgumentError,
    LimitError,
    MunimentError,
    PreconditionError,
    TamperedError,
)
from muniment.kit.store import Store, Writer
from muniment.kit.store.backup import DATA_FILE, MANIFEST_FILE, backup_store, read_manifest
from muniment.kit.store.restore import check_copy, examine_copy, restore_copy
from muniment.v1 import store_pb2
from tests.support.rows import scan
from tests.support.seams import FakeClock
from tests.support.small_stores import (
    NAMES,
    SEALED,
    TEXTS,
    a_full_disk,
    a_protection,
    contents,
    open_small,
    quiet,
    write_some,
)
from tests.waiting import until

_WRITERS = 8
SERVICE = "small"


@pytest.fixture
def service(tmp_path: Path) -> Path:
    return tmp_path / "small"


@pytest.fixture
def store(service: Path) -> Store:
    store = open_small(service / "store")
    write_some(store)
    return store


def restored(service: Path, source: Path, sealed: bool = False) -> Store:
    copy = examine_copy(source, "small", quiet)
    protection = SEALED if sealed else a_protection()
    check_copy(copy, protection)
    restore_copy(copy, service / "store", FakeClock(), quiet)
    return open_small(service / "store", protection)


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_there_and_back(tmp_path: Path, sealed: bool) -> None:
    service, target = tmp_path / "small", tmp_path / "copies" / "monday"
    store = open_small(service / "store", SEALED if sealed else None)
    write_some(store)
    before = contents(store)
    manifest = backup_store(store, SERVICE, target, quiet)
    assert read_manifest(target) == manifest
    assert manifest.position == store.position
    assert manifest.incarnation == store.incarnation
    assert manifest.sealed == sealed
    assert manifest.size_bytes == (target / DATA_FILE).stat().st_size
    assert sorted(path.name for path in target.iterdir()) == [MANIFEST_FILE, DATA_FILE]
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in target.iterdir())
    write_some(store, 21, 30)
    after = contents(store)
    store.close()

    brought_back = restored(service, target, sealed)
    assert brought_back.incarnation != manifest.incarnation
    assert not brought_back.doubts
    assert without_life(contents(brought_back)) == without_life(before)
    brought_back.close()
    (kept,) = (one for one in service.iterdir() if one.name != "store")
    assert kept.name.startswith("store.before-restore-")

    # And back again to what was moved aside.
    brought_back = restored(service, kept, sealed)
    assert without_life(contents(brought_back)) == without_life(after)
    brought_back.close()


def test_a_copy_under_another_key_comes_under_the_stores_own(tmp_path: Path, store: Store) -> None:
    before, service = contents(store), tmp_path / "sealed"
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    store.close()
    service.mkdir()
    keys = a_protection(), SEALED
    for source in (tmp_path / "copy", tmp_path / "small" / "store"):
        copy = examine_copy(source, "small", quiet)
        restore_copy(copy, service / "store", FakeClock(), quiet, rewriting=keys)
        assert b"text 12" not in (service / "store" / "data.mdb").read_bytes()
        brought_back = open_small(service / "store", SEALED)
        assert without_life(contents(brought_back)) == without_life(before)
        assert brought_back.incarnation != store.incarnation
        brought_back.close()


def test_a_damaged_copy_is_not_rewritten(tmp_path: Path, store: Store) -> None:
    store.close()
    data = store.path / "data.mdb"
    data.write_bytes(data.read_bytes().replace(b"text 12", b"text 21"))
    copy = examine_copy(store.path, "small", quiet)
    (tmp_path / "sealed").mkdir()
    with pytest.raises(TamperedError):
        restore_copy(
            copy,
            tmp_path / "sealed" / "store",
            FakeClock(),
            quiet,
            rewriting=(a_protection(), SEALED),
        )
    assert list((tmp_path / "sealed").iterdir()) == []


def without_life(found: object) -> object:
    assert isinstance(found, dict)
    state = store_pb2.StoredState.FromString(found["state"])
    state.ClearField("incarnation")
    return {**found, "state": state.SerializeToString(deterministic=True)}


def write_both(writer: Writer, number: int) -> None:
    text = store_pb2.StoredContent(text=f"text {number} " * 50)
    writer.put(TEXTS, number, value=text)
    writer.put(NAMES, "n", number, value=store_pb2.StoredEpisodeRef(seq=number))


def has(acknowledged: list[int], count: int) -> bool:
    return len(acknowledged) >= count


def test_writers_go_on_and_lose_nothing(tmp_path: Path, service: Path, store: Store) -> None:
    stop, numbers = Event(), itertools.count(1000)
    acknowledged: list[int] = []

    def write_on() -> None:
        while not stop.is_set():
            number = next(numbers)
            store.write(partial(write_both, number=number)).result()
            acknowledged.append(number)

    with ThreadPoolExecutor(_WRITERS) as writers:
        writing = [writers.submit(write_on) for _ in range(_WRITERS)]
        for copy in range(3):
            enough = 40 * (copy + 1)
            until(partial(has, acknowledged, enough), f"{enough} writes are acknowledged")
            before = list(acknowledged)
            manifest = backup_store(store, SERVICE, tmp_path / f"copy-{copy}", quiet)
            assert manifest.position >= len(before)
        stop.set()
        for one in writing:
            one.result()
    store.close()
    brought_back = restored(service, tmp_path / "copy-2")
    assert not brought_back.doubts
    with brought_back.read() as reader:
        texts = {key[0] for key, _ in scan(reader, TEXTS)}
        names = {key[1] for key, _ in scan(reader, NAMES, "n")}
        state = reader.state()
    assert set(before) <= texts
    assert names == {number for number in texts if isinstance(number, int) and number >= 1000}
    assert state.position == manifest.position
    brought_back.close()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("relative/path", "BACKUP_TARGET_INVALID"),
        ("small/store/copy", "BACKUP_TARGET_INVALID"),
        ("small/store.mine", "BACKUP_TARGET_INVALID"),
        ("small/../small/copy", "BACKUP_TARGET_INVALID"),
        ("", "BACKUP_TARGET_EXISTS"),
    ],
)
def test_it_goes_into_a_folder_of_its_own(
    tmp_path: Path, store: Store, target: str, reason: str
) -> None:
    path = (
        Path(target) if reason.endswith("INVALID") and "small" not in target else tmp_path / target
    )
    with pytest.raises((InvalidArgumentError, PreconditionError)) as refused:
        backup_store(store, SERVICE, path, quiet)
    assert refused.value.reason == reason
    assert refused.value.field == "target_folder"
    store.close()


def test_a_folder_that_cannot_be_made_is_told_as_the_target(tmp_path: Path, store: Store) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PreconditionError) as refused:
        backup_store(store, SERVICE, tmp_path / "file" / "copy", quiet)
    assert (refused.value.reason, refused.value.field) == ("FOLDER_UNUSABLE", "target_folder")
    assert "MUNIMENT_HOME" not in str(refused.value.fix)
    store.close()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, store: Store) -> None:
    with a_full_disk(after_bytes=8192), pytest.raises(LimitError) as refused:
        backup_store(store, SERVICE, tmp_path / "copy", quiet)
    assert refused.value.reason == "BACKUP_FAILED"
    assert not (tmp_path / "copy").exists()
    write_some(store, 21, 22)
    store.close()


def test_one_that_nobody_waits_for_leaves_nothing_behind(tmp_path: Path, store: Store) -> None:
    def leave(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup_store(store, SERVICE, tmp_path / "copy", leave)
    assert not (tmp_path / "copy").exists()
    store.close()


def edit_manifest(copy: Path, **changes: object) -> None:
    file = copy / MANIFEST_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def edit_data(copy: Path) -> None:
    data = bytearray((copy / DATA_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / DATA_FILE).write_bytes(data)


def exchange(copy: Path) -> None:
    """Another store's data, with a manifest whose digest fits."""
    other = open_small(copy.parent / "other" / "store")
    write_some(other, 1, 5)
    manifest = backup_store(other, SERVICE, copy.parent / "other copy", quiet)
    other.close()
    (copy / DATA_FILE).write_bytes((copy.parent / "other copy" / DATA_FILE).read_bytes())
    edit_manifest(copy, sha256=manifest.sha256, size_bytes=manifest.size_bytes)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "half-written": (lambda copy: (copy / MANIFEST_FILE).unlink(), "BACKUP_UNFINISHED"),
    "no data": (lambda copy: (copy / DATA_FILE).unlink(), "BACKUP_UNKNOWN"),
    "an edited byte": (edit_data, "BACKUP_DAMAGED"),
    "cut off": (lambda copy: os.truncate(copy / DATA_FILE, 5000), "BACKUP_DAMAGED"),
    "no JSON": (lambda copy: (copy / MANIFEST_FILE).write_text("{"), "BACKUP_DAMAGED"),
    "another kind": (lambda copy: edit_manifest(copy, position="7"), "BACKUP_DAMAGED"),
    "one more": (lambda copy: edit_manifest(copy, extra=1), "BACKUP_DAMAGED"),
    "a later format": (lambda copy: edit_manifest(copy, format=2), "BACKUP_FORMAT_UNKNOWN"),
    "another service": (lambda copy: edit_manifest(copy, service="else"), "BACKUP_DAMAGED"),
    "another version": (lambda copy: edit_manifest(copy, schema_version=9), "BACKUP_DAMAGED"),
    "another key": (lambda copy: edit_manifest(copy, key_id="00"), "BACKUP_DAMAGED"),
    "another place": (lambda copy: edit_manifest(copy, position=1), "BACKUP_DAMAGED"),
    "another store": (exchange, "BACKUP_DAMAGED"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_copy_is_refused(tmp_path: Path, store: Store, how: str) -> None:
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    store.close()
    breaks, reason = BROKEN[how]
    breaks(tmp_path / "copy")
    with pytest.raises(PreconditionError) as refused:
        check_copy(examine_copy(tmp_path / "copy", "small", quiet), a_protection())
    assert refused.value.reason == reason
    assert refused.value.field == "source"
    assert refused.value.fix is not None


def test_the_wrong_key_opens_no_copy(tmp_path: Path, store: Store) -> None:
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    store.close()
    copy = examine_copy(tmp_path / "copy", "small", quiet)
    with pytest.raises(PreconditionError):
        check_copy(copy, a_protection(7))


def test_a_copy_that_changes_meanwhile_is_refused(
    tmp_path: Path, service: Path, store: Store
) -> None:
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    before = contents(store)
    store.close()
    copy = examine_copy(tmp_path / "copy", "small", quiet)
    edit_data(tmp_path / "copy")
    with pytest.raises(PreconditionError):
        restore_copy(copy, service / "store", FakeClock(), quiet)
    again = open_small(service / "store")
    assert contents(again) == before
    again.close()
    assert [path.name for path in service.iterdir()] == ["store"]


def test_a_full_disk_leaves_the_store_as_it_was(
    tmp_path: Path, service: Path, store: Store
) -> None:
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    before = contents(store)
    store.close()
    copy = examine_copy(tmp_path / "copy", "small", quiet)
    with a_full_disk(after_bytes=8192), pytest.raises(LimitError):
        restore_copy(copy, service / "store", FakeClock(), quiet)
    again = open_small(service / "store")
    assert contents(again) == before
    again.close()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as refused:
        examine_copy(tmp_path, "small", quiet)
    assert refused.value.reason == "BACKUP_UNKNOWN"
    (tmp_path / "data.mdb").write_bytes(b"no environment" * 1000)
    with pytest.raises(MunimentError) as unreadable:
        examine_copy(tmp_path, "small", quiet)
    assert unreadable.value.reason == "STORE_UNREADABLE"


def test_it_can_be_restored_where_nothing_was(tmp_path: Path, store: Store) -> None:
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    before = contents(store)
    store.close()
    (tmp_path / "elsewhere").mkdir()
    brought_back = restored(tmp_path / "elsewhere", tmp_path / "copy")
    assert without_life(contents(brought_back)) == without_life(before)
    brought_back.close()


def test_a_backup_makes_room_before_it_holds_others_up(tmp_path: Path) -> None:
    store = open_small(tmp_path / "small" / "store", first_map_bytes=1024**2)
    write_some(store, 1, 1000)
    backup_store(store, SERVICE, tmp_path / "copy", quiet)
    store.close()
    with lmdb.open(str(tmp_path / "small" / "store"), max_dbs=9) as environment:
        used = environment.info()["last_pgno"] * environment.stat()["psize"]
    assert used > 1024**2 // 2
