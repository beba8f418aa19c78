"""The records of another program's SQLite file, read without a byte of it being changed.

That program keeps entities, state documents, reference documents, journal events and archived
entities in tables of these names, for one or more tenants. The file may be in use: what is read is
one moment of it. Where there is a write-ahead log, which SQLite could not read without writing
beside it, file and log are copied while no other process can write, and the copy is read.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.errors import InvalidArgumentError, PreconditionError, UnavailableError
from muniment.kit.files import copy_file
from muniment.v1 import records_pb2
from muniment.workflows.peer_rows import READERS, LeftOut

__all__ = ["PeerStore", "open_peer_store"]

_VERSIONS = range(3, 6)
"""Schema versions that are read."""

_VERSION_TABLE = "sibyl_memory_schema_version"

_SHARED_LOCK = (0x40000002, 510)
"""Where SQLite locks its file for reading: first byte and length. While others hold that, nobody
takes the log away."""

_WRITE_LOCKS = (120, 2)
"""Where it locks the shared memory of a write-ahead log for writing and for checkpoints."""

_COPY_ATTEMPTS = 5

_LOCK_ATTEMPTS = 100
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class PeerStore:
    """One moment of the other program's store."""

    connection: sqlite3.Connection

    def tenants(self) -> dict[str, dict[str, int]]:
        """Tenant → table → how many rows it has."""
        found: dict[str, dict[str, int]] = {}
        for table in READERS:
            rows = self.connection.execute(
                f"SELECT tenant_id, count(*) FROM {table} GROUP BY tenant_id ORDER BY tenant_id"
            )
            for tenant, count in rows:
                named = (tenant or b"").decode(errors="backslashreplace")
                found.setdefault(named, dict.fromkeys(READERS, 0))[table] = count
        return dict(sorted(found.items()))

    def records(self, tenant: str) -> Iterator[records_pb2.Record | LeftOut]:
        """The tenant's records, table after table, each from the oldest on; and what is none."""
        for table, reader in READERS.items():
            columns = ", ".join(("rowid", *reader.columns))
            # The tenant as it was listed: a value of another type, or no text, is none of them.
            rows = self.connection.execute(
                f"SELECT {columns} FROM {table} WHERE CAST(tenant_id AS BLOB) = ?"
                f" ORDER BY {reader.age}, rowid",
                (tenant.encode(),),
            )
            for rowid, *values in rows:
                yield reader.read(table, rowid, values)


@contextmanager
def open_peer_store(path: Path, private: Path) -> Iterator[PeerStore]:
    """Open the file; `private` is a folder where a copy may stand meanwhile.

    Raises:
        PreconditionError: It is no such store, of a version that is not known, or damaged.
        UnavailableError: The other program writes to it all the time.
    """
    path = path.resolve()
    if not path.is_file():
        raise InvalidArgumentError(
            f"there is no file {path}",
            reason="PEER_STORE_UNREADABLE",
            field="file",
            fix="name the store of the other program, such as its memory.db",
        )
    if _beside(path, "-journal").exists():
        raise _unreadable(path, "a write to it was interrupted, which its own program mends")
    with ExitStack() as opened:
        try:
            uri = opened.enter_context(_as_it_is(path, private))
            connection = opened.enter_context(closing(_connect(uri)))
            connection.execute("BEGIN")
            _check(connection, path)
        except (sqlite3.Error, OSError) as error:
            raise _unreadable(path, str(error)) from error
        try:
            yield PeerStore(connection)
        except sqlite3.Error as error:
            raise _unreadable(path, str(error)) from error


@contextmanager
def _as_it_is(path: Path, private: Path) -> Iterator[str]:
    """Where to read, as SQLite is told it: the file, or a copy of it with its log."""
    if not _beside(path, "-wal").exists():
        # A log that comes meanwhile is not looked at, and so what is in it is of a later moment.
        before = _state(path)[0]
        with _locked(path, *_SHARED_LOCK):
            yield f"{path.as_uri()}?mode=ro&immutable=1"
            if _state(path)[0] != before:
                raise _busy(path)
        return
    with tempfile.TemporaryDirectory(prefix="import-", dir=private) as folder:
        yield f"{_copy(path, Path(folder)).as_uri()}?mode=rw"


def _copy(path: Path, folder: Path) -> Path:
    """Copy file and log, as they are together at one moment; the copy."""
    target = folder / "copy.db"
    for _ in range(_COPY_ATTEMPTS):
        before = _state(path)
        shared = _beside(path, "-shm")
        with _locked(path, *_SHARED_LOCK), _locked(shared, *_WRITE_LOCKS):
            for end in ("", "-wal"):
                copied = _beside(target, end)
                copied.unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    copy_file(_beside(path, end), copied, lambda done: None)
        if _state(path) == before:
            return target
    raise _busy(path)


@contextmanager
def _locked(path: Path, start: int, length: int) -> Iterator[None]:
    """Hold a lock for reading on these bytes of the file, if there is one; it is not written to.

    Raises:
        UnavailableError: Somebody holds one for writing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        for _ in range(_LOCK_ATTEMPTS):
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
                break
            time.sleep(_POLL_SECONDS)
        else:
            raise _busy(path)
        yield
    finally:
        os.close(descriptor)


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    # Not all that stands in a column of texts is text.
    connection.text_factory = bytes
    # Tables alone are read, and so nothing that the file brings along is carried out. A schema that
    # is not trusted could not be used: its checks call functions that SQLite then refuses.
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Look whether it is what is read here.

    Raises:
        PreconditionError: It is not.
    """
    tables = {
        name.decode(errors="replace")
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
        )
    }
    missing = sorted({_VERSION_TABLE, *READERS} - tables)
    for table, reader in READERS.items():
        if table in tables:
            known = {row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")}
            wanted = {"tenant_id", *reader.columns}
            missing += [f"{table}.{column}" for column in sorted(wanted - known)]
    if missing:
        raise _unreadable(path, f"it has no {', '.join(missing)}: it is no such store")
    (version,) = connection.execute(f"SELECT max(version) FROM {_VERSION_TABLE}").fetchone()
    if version not in _VERSIONS:
        raise PreconditionError(
            f"{path} has schema version {version}; versions {_VERSIONS[0]} to {_VERSIONS[-1]} are"
            " read",
            reason="PEER_VERSION_UNKNOWN",
            field="file",
            fix="open it once with a version of its program that brings it up to one of these",
        )
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != b"ok":
        raise _unreadable(path, f"it is damaged ({found.decode(errors='replace'):.200})")


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _state(path: Path) -> list[tuple[int, ...] | None]:
    """What changes where somebody writes to the file or its log."""
    found: list[tuple[int, ...] | None] = []
    for one in (path, _beside(path, "-wal")):
        try:
            stat = one.stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found


def _unreadable(path: Path, why: str) -> PreconditionError:
    return PreconditionError(
        f"{path} cannot be read: {why}",
        reason="PEER_STORE_UNREADABLE",
        field="file",
        fix="name the store of the other program, such as its memory.db",
    )


def _busy(path: Path) -> UnavailableError:
    return UnavailableError(
        f"another process writes to {path}",
        reason="PEER_STORE_BUSY",
        field="file",
        fix="stop what uses it, then call again",
    )
