"""Another program's store is read as it is at one moment, and never written to."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from muniment.kit.errors import InvalidArgumentError, MunimentError, UnavailableError
from muniment.v1 import records_pb2
from muniment.workflows import peer_store
from muniment.workflows.peer_import import choose_tenant
from muniment.workflows.peer_rows import LeftOut
from muniment.workflows.peer_store import open_peer_store
from muniment.workflows.record_lines import record_line
from tests.support.peer_stores import TENANT, fill_peer_store, make_peer_store, state_of_folder


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store in a folder of its own."""
    folder = tmp_path / "other"
    folder.mkdir()
    path = make_peer_store(folder / "memory.db")
    fill_peer_store(path)
    return path


def read(path: Path, private: Path, tenant: str = TENANT) -> list[records_pb2.Record | LeftOut]:
    with open_peer_store(path, private) as opened:
        return list(opened.records(tenant))


def refused(path: Path, private: Path) -> MunimentError:
    with pytest.raises(MunimentError) as caught:
        read(path, private)
    return caught.value


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_every_kind_is_read(store: Path, private: Path) -> None:
    before = state_of_folder(store.parent)
    records = read(store, private)
    lines = [record_line(one).decode() for one in records if isinstance(one, records_pb2.Record)]
    at = '"2026-01-02T03:04:05.678000000Z"'
    assert lines == [
        f'{{"kind":"entity","id":"e1-{TENANT}","category":"people","name":"ann","status":"active",'
        f'"created_at":{at},"updated_at":{at},"body":{{"likes":"tea"}}}}\n',
        f'{{"kind":"entity","id":"e2-{TENANT}","category":"people","name":"bob",'
        f'"created_at":{at},"updated_at":{at},"body":{{"n":1.5}}}}\n',
        f'{{"kind":"state","key":"plan","updated_at":{at},"body":["a"]}}\n',
        f'{{"kind":"reference","key":"guide","updated_at":{at},"metadata":{{}},"body":"a text"}}\n',
        f'{{"kind":"event","id":"j1-{TENANT}","ts":{at},"acted":{{"kind":"x"}},"extra":{{}}}}\n',
        f'{{"kind":"archived","id":"a1-{TENANT}","archived_at":{at},"reason":"left",'
        f'"entity":{{"id":"e0","category":"people","name":"eve","created_at":{at},'
        f'"updated_at":{at},"body":{{"gone":true}}}}}}\n',
    ]
    assert state_of_folder(store.parent) == before
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("version", [3, 5])
def test_neighbouring_versions_are_read(tmp_path: Path, private: Path, version: int) -> None:
    path = make_peer_store(tmp_path / "memory.db", version)
    assert read(path, private) == []


@pytest.mark.parametrize("version", [2, 6, None])
def test_other_versions_are_refused(tmp_path: Path, private: Path, version: int | None) -> None:
    path = make_peer_store(tmp_path / "memory.db", version)
    assert refused(path, private).reason == "PEER_VERSION_UNKNOWN"


def make_text(path: Path) -> None:
    path.write_bytes(b"Dear Sir,\n" * 1000)


def make_nothing(path: Path) -> None:
    path.touch()


def make_other(path: Path) -> None:
    change(path, "CREATE TABLE entities (id TEXT)")


def make_damaged(path: Path) -> None:
    make_peer_store(path)
    fill_peer_store(path)
    raw = bytearray(path.read_bytes())
    raw[4096:8192] = b"\xff" * 4096
    path.write_bytes(raw)


def make_interrupted(path: Path) -> None:
    make_peer_store(path)
    path.with_name(f"{path.name}-journal").write_bytes(b"x")


def make_folder(path: Path) -> None:
    path.mkdir()


def make_none(path: Path) -> None:
    """None at all."""


@pytest.mark.parametrize(
    "make",
    [
        *(make_text, make_nothing, make_other, make_damaged),
        *(make_interrupted, make_folder, make_none),
    ],
)
def test_what_is_no_such_store_is_refused(
    tmp_path: Path, private: Path, make: Callable[[Path], None]
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    make(folder / "memory.db")
    before = sorted(folder.iterdir())
    error = refused(folder / "memory.db", private)
    assert (error.reason, error.field) == ("PEER_STORE_UNREADABLE", "file")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("table", "column", "value", "why"),
    [
        ("entities", "body", "'{'", "body is no JSON"),
        ("entities", "body", "'[NaN]'", "body has NaN, which JSON does not know"),
        ("entities", "body", "x'ff'", "body is not UTF-8"),
        ("entities", "name", "'a' || char(27)", "name has a control character"),
        ("entities", "category", "''", "category is empty"),
        ("entities", "name", "printf('%2000c', 'x')", "name has 2000 characters"),
        ("entities", "updated_at", "'noon'", "updated_at is no time"),
        ("state_documents", "document_key", "char(10)", "document_key has a control character"),
        ("reference_documents", "metadata", "'[]'", "metadata is no object"),
        ("journal_events", "forward", "'nix'", "forward is no JSON"),
        ("archived_entities", "name", "NULL", "name is missing"),
    ],
)
def test_a_row_that_is_no_record_is_told(
    store: Path, private: Path, table: str, column: str, value: str, why: str
) -> None:
    change(store, f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
    found = read(store, private)
    (left,) = [one for one in found if isinstance(one, LeftOut)]
    assert (left.table, left.rowid) == (table, 1)
    assert left.why.startswith(why)
    assert len(found) == 6


@pytest.mark.parametrize("written", ["2026-01-02 03:04:05", "2026-01-02T03:04:05.678901+00:00"])
def test_times_may_be_written_otherwise(store: Path, private: Path, written: str) -> None:
    change(store, f"UPDATE state_documents SET updated_at = '{written}'")
    (state,) = [
        one.state.updated_at.ToJsonString()
        for one in read(store, private)
        if isinstance(one, records_pb2.Record) and one.HasField("state")
    ]
    assert state.startswith("2026-01-02T03:04:05")


def test_tenants_are_told_apart(store: Path, private: Path) -> None:
    fill_peer_store(store, "other")
    with open_peer_store(store, private) as opened:
        assert list(opened.tenants()) == [TENANT, "other"]
        assert opened.tenants()["other"]["entities"] == 2
        assert choose_tenant(opened, "other") == "other"
        for wanted in (None, "nobody"):
            with pytest.raises(InvalidArgumentError) as caught:
                choose_tenant(opened, wanted)
            assert caught.value.reason == "PEER_TENANT_UNKNOWN"
            assert f"name one of {TENANT}, other" in str(caught.value)
        assert len(list(opened.records("other"))) == 6


def test_the_only_tenant_is_meant(store: Path, tmp_path: Path, private: Path) -> None:
    with open_peer_store(store, private) as opened:
        assert choose_tenant(opened, None) == TENANT
    empty = make_peer_store(tmp_path / "empty.db")
    with (
        open_peer_store(empty, private) as opened,
        pytest.raises(InvalidArgumentError, match="no records"),
    ):
        choose_tenant(opened, None)


# --- While it is in use


@pytest.fixture
def busy(store: Path) -> Iterator[sqlite3.Connection]:
    """A connection of a process that writes to the store, with a write-ahead log."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("UPDATE entities SET status = 'in the log' WHERE name = 'ann'")
        yield connection


# SQLite's locks are its process's: whoever reads it has to be another one.
_READ = """
import sys
from pathlib import Path
from muniment.workflows.peer_store import open_peer_store
with open_peer_store(Path(sys.argv[1]), Path(sys.argv[2])) as store:
    for record in store.records("00000000-0000-0000-0000-000000000001"):
        print(record.entity.status)
        break
"""


def test_what_is_in_the_log_is_read(store: Path, private: Path, busy: sqlite3.Connection) -> None:
    before = state_of_folder(store.parent)
    assert set(before) == {"memory.db", "memory.db-wal", "memory.db-shm"}
    command = [sys.executable, "-c", _READ, str(store), str(private)]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    assert ran.stdout == "in the log\n"
    assert state_of_folder(store.parent) == before
    assert list(private.iterdir()) == []
    busy.execute("DELETE FROM state_documents")


def test_a_log_that_was_left_is_read(
    store: Path, private: Path, busy: sqlite3.Connection, tmp_path: Path
) -> None:
    left = tmp_path / "left"
    left.mkdir()
    for end in ("", "-wal"):
        (left / f"memory.db{end}").write_bytes((store.parent / f"memory.db{end}").read_bytes())
    before = state_of_folder(left)
    first, *_ = read(left / "memory.db", private)
    assert isinstance(first, records_pb2.Record)
    assert first.entity.status == "in the log"
    assert state_of_folder(left) == before


def test_who_writes_all_the_time_is_told(
    store: Path, private: Path, busy: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_store, "_POLL_SECONDS", 0.0)

    def refuse(*arguments: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(UnavailableError) as caught:
        read(store, private)
    assert caught.value.reason == "PEER_STORE_BUSY"


def test_a_file_that_changes_while_it_is_read_is_told(store: Path, private: Path) -> None:
    with pytest.raises(UnavailableError), open_peer_store(store, private):
        os.utime(store, ns=(0, 0))
