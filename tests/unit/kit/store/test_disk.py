"""The disk: files for their owner alone, and a commit that fails leaves nothing."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

import lmdb
import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import LimitError
from muniment.kit.store import Once, Store, StoreOptions, Writer
from muniment.kit.store.disk import SystemDisk
from muniment.v1 import store_pb2
from tests.support.stores import (
    NOTES,
    SCHEMA,
    QuickDisk,
    Stepped,
    demand_sound,
    protection,
    text,
)


class WatchedDisk(QuickDisk):
    """Notes what is asked of it, and takes nothing while it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.is_full = False

    def committing(self, environment: lmdb.Environment) -> None:
        self.asked.append("committing")
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def committed(self, environment: lmdb.Environment) -> None:
        self.asked.append("committed")


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    stepped = Stepped(tmp_path / "store", disk=SystemDisk())
    stepped.put(NOTES, "a", value="a")
    stepped.close()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in stepped.store.path.iterdir()}
    assert {"data.mdb", "lock.mdb"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_an_answer_comes_after_the_disk_says_so(tmp_path: Path) -> None:
    disk = WatchedDisk()
    stepped = Stepped(tmp_path / "store", disk=disk)
    disk.asked.clear()
    future = stepped.store.write(lambda writer: writer.put(NOTES, "a", value=text("a")))
    stepped.loop.commit_batch()
    assert disk.asked == ["committing", "committed"]
    assert not future.done()
    stepped.loop.follow_batch()
    assert future.done()
    stepped.close()


def test_nothing_of_a_failed_commit_is_kept_and_the_store_goes_on(tmp_path: Path) -> None:
    disk = WatchedDisk()
    stepped = Stepped(tmp_path / "store", disk=disk)
    stepped.put(NOTES, "a", value="before")
    disk.is_full = True
    futures = [
        stepped.store.write(lambda writer: writer.put(NOTES, "a", value=text("lost"))),
        stepped.store.write(lambda writer: writer.put(NOTES, "b", value=text("lost"))),
    ]
    stepped.step()
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, LimitError)
        assert error.reason == "STORE_WRITE_FAILED"
        assert "No space left on device" in error.message
    assert stepped.rows(NOTES) == {("a",): "before"}
    disk.is_full = False
    stepped.put(NOTES, "a", value="after")
    assert stepped.rows(NOTES) == {("a",): "after"}
    assert stepped.store.position == 2
    demand_sound(stepped.store)
    stepped.close()


def test_a_store_that_cannot_be_opened_anew_refuses_and_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = WatchedDisk()
    options = StoreOptions(map_limit_bytes=1024**2, disk=disk)
    store = Store(tmp_path / "store", SCHEMA, protection(), options)

    def give_up(*unused: object, **unused_too: object) -> lmdb.Environment:
        raise lmdb.PanicError("commit", -30795)

    monkeypatch.setattr(disk, "committing", give_up)
    monkeypatch.setattr(disk, "open", give_up)
    for reason in ("STORE_OPENED_ANEW", "STORE_WRITE_FAILED"):
        future = store.write(lambda writer: writer.put(NOTES, "a", value=text("a")))
        assert getattr(future.exception(20.0), "reason", None) == reason
    store.close()


def test_an_environment_that_lmdb_gives_up_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = WatchedDisk()
    stepped = Stepped(tmp_path / "store", disk=disk)
    stepped.put(NOTES, "a", value="before")

    def give_up(environment: lmdb.Environment) -> None:
        raise lmdb.PanicError("commit", -30795)

    monkeypatch.setattr(disk, "committing", give_up)
    future = stepped.store.write(lambda writer: writer.put(NOTES, "a", value=text("unknown")))
    stepped.step()
    error = future.exception(0)
    assert getattr(error, "reason", None) == "STORE_OPENED_ANEW"
    monkeypatch.undo()
    assert len(disk.environments) == 2
    assert stepped.rows(NOTES) == {("a",): "before"}
    stepped.put(NOTES, "a", value="after")
    demand_sound(stepped.store)
    stepped.close()


def test_a_kept_outcome_is_told_when_the_disk_takes_no_more(tmp_path: Path) -> None:
    disk = WatchedDisk()
    stepped = Stepped(tmp_path / "store", disk=disk)
    context = CallContext(project_id="proj_1", idempotency_key="k")

    def change(writer: Writer) -> store_pb2.StoredContent:
        writer.put(NOTES, "a", value=text("a"))
        return text("is done")

    once = Once(context, text("asks"), store_pb2.StoredContent, change, stepped.clock)
    for disk.is_full in (False, True):
        asked = stepped.store.write(once.run, remember=once.remember)
        # A neighbour that writes is refused, and does not take the other down with it.
        writes = stepped.store.write(lambda writer: writer.put(NOTES, "b", value=text("b")))
        stepped.step()
        assert asked.result(0).text == "is done"
        assert (writes.exception(0) is not None) == disk.is_full
    stepped.close()
