"""One LMDB environment with typed tables, a single writer and a feed of changes.

A write is a function of a `Writer`. It runs on the store's writer thread, in one transaction with
everything it reads; its future resolves after the transaction is on disk and every follower (the
lexical index) has taken the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import lmdb
from google.protobuf.message import Message

from muniment.kit import faults
from muniment.kit.errors import InternalError, LimitError, MunimentError, PreconditionError
from muniment.kit.files import hold_file, private_folder
from muniment.kit.store.keys import ESCAPE, KeyPart, pack, unpack
from muniment.kit.store.tables import CHANGES, META, Schema, Table
from muniment.v1 import store_pb2

__all__ = ["Follower", "Reader", "Store", "Writer"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_SCHEMA_KEY = "schema"


class Follower(Protocol):
    """Something derived from the store that is brought up to date after each commit."""

    def catch_up(self, reader: Reader) -> None:
        """Take what changed since the follower's position. Called on the writer thread."""
        ...


class Reader:
    """A transaction's view of the tables: one moment of the store."""

    def __init__(self, transaction: lmdb.Transaction, databases: Mapping[str, Any]) -> None:
        self._transaction = transaction
        self._databases = databases

    def get(self, table: Table[M], *key: KeyPart) -> M | None:
        """The row of that key, or None."""
        raw = self._transaction.get(pack(*key), db=self._databases[table.name])
        return None if raw is None else table.message.FromString(bytes(raw))

    def scan(
        self, table: Table[M], *prefix: KeyPart, after: tuple[KeyPart, ...] | None = None
    ) -> Iterator[tuple[tuple[KeyPart, ...], M]]:
        """Rows whose keys begin with the prefix, in key order, from behind `after`."""
        start = pack(*prefix)
        with self._transaction.cursor(db=self._databases[table.name]) as cursor:
            last = pack(*after) if after else None
            found = cursor.set_range(last or start)
            if found and cursor.key() == last:
                found = cursor.next()
            # Text that goes on behind a zero packs to the prefix's bytes and an escape.
            while (
                found
                and (key := bytes(cursor.key())).startswith(start)
                and not key.startswith(ESCAPE, len(start))
            ):
                yield unpack(key), table.message.FromString(bytes(cursor.value()))
                found = cursor.next()

    def last_number(self, table: Table[Any]) -> int:
        """The greatest key of a table that is keyed by a number; 0 where it is empty."""
        with self._transaction.cursor(db=self._databases[table.name]) as cursor:
            return cast(int, unpack(bytes(cursor.key()))[0]) if cursor.last() else 0

    def count(self, table: Table[Any]) -> int:
        """How many rows the table has."""
        return self._transaction.stat(self._databases[table.name])["entries"]


class Writer(Reader):
    """The transaction that changes the tables. Nothing of it is seen before it commits."""

    def put(self, table: Table[M], *key: KeyPart, value: M) -> None:
        """Set the row of that key."""
        packed = pack(*key)
        self._transaction.put(
            packed,
            value.SerializeToString(deterministic=True),
            db=self._databases[table.name],
        )
        if table.in_feed:
            change = store_pb2.StoredChange(table=table.name, key=packed)
            position = self.last_number(CHANGES) + 1
            self.put(CHANGES, position, value=change)

    def delete(self, table: Table[Any], *key: KeyPart) -> None:
        """Take the row away. Rows of tables in the feed stay, marked by their own fields."""
        self._transaction.delete(pack(*key), db=self._databases[table.name])


class Store:
    """A store, open until `close`. One process alone may hold it."""

    def __init__(self, folder: Path, schema: Schema, *, map_bytes: int) -> None:
        """Open the store, and make it where there is none.

        Raises:
            PreconditionError: It has another schema version, another process holds it, or it
                cannot be opened.
        """
        private_folder(folder)
        self._path = folder
        self._schema = schema
        self._followers: list[Follower] = []
        tables: tuple[Table[Any], ...] = (CHANGES, *schema.tables)
        with ExitStack() as opened:
            try:
                opened.enter_context(hold_file(folder / "held"))
                self._environment = opened.enter_context(
                    lmdb.open(
                        str(folder),
                        map_size=map_bytes,
                        max_dbs=1 + len(tables),
                        mode=0o600,
                        readahead=False,
                    )
                )
                self._databases = {META.name: self._environment.open_db(META.name.encode())}
                self._check_schema()
                for table in tables:
                    self._databases[table.name] = self._environment.open_db(table.name.encode())
            except BlockingIOError as error:
                raise _unreadable(folder, "another process has it open") from error
            except lmdb.Error as error:
                raise _unreadable(folder, str(error)) from error
            self._environment.reader_check()
            self._opened = opened.pop_all()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-writer")

    @property
    def schema_version(self) -> int:
        """Version of the tables' shape."""
        return self._schema.version

    @property
    def path(self) -> Path:
        """Folder of the LMDB environment."""
        return self._path

    def size_bytes(self) -> int:
        """Disk that the store uses."""
        return (self._path / "data.mdb").stat().st_blocks * 512

    def follow(self, follower: Follower) -> None:
        """Keep the follower up to date, starting with what it has missed."""
        with self.read() as reader:
            follower.catch_up(reader)
        self._followers.append(follower)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """One moment of the store, for this thread."""
        with self._environment.begin(buffers=False) as transaction:
            yield Reader(transaction, self._databases)

    def write(self, change: Callable[[Writer], T]) -> Future[T]:
        """Run the change in a transaction of its own, after those that were asked for before.

        The future has the change's result once it is on disk and followed. When the change
        raises, nothing of it is kept. When only a follower failed, the change is kept and the
        error is one that a retry with the same idempotency key resolves.
        """
        return self._writer.submit(self._write, change)

    def close(self) -> None:
        """Finish the writes that were asked for, and close."""
        self._writer.shutdown(wait=True)
        self._opened.close()

    def _write(self, change: Callable[[Writer], T]) -> T:
        try:
            with self._environment.begin(write=True, buffers=False) as transaction:
                result = change(Writer(transaction, self._databases))
                faults.reach("store.before_commit")
        except lmdb.MapFullError as error:
            raise LimitError(
                "the store has reached its size limit",
                reason="STORE_FULL",
                field="memory_map_bytes",
                fix="raise the setting and restart the service",
            ) from error
        except lmdb.Error as error:
            raise LimitError(
                f"the store could not be written: {error}",
                reason="STORE_WRITE_FAILED",
                fix="check the disk's space and health; nothing of this call was kept",
            ) from error
        faults.reach("store.after_commit")
        self._catch_up()
        faults.reach("store.after_follow")
        return result

    def _catch_up(self) -> None:
        with self.read() as reader:
            for follower in self._followers:
                follower.catch_up(reader)

    def _check_schema(self) -> None:
        """Refuse a store of another version before anything of it is touched."""
        with self._environment.begin(write=True, buffers=False) as transaction:
            writer = Writer(transaction, self._databases)
            stored = writer.get(META, _SCHEMA_KEY)
            if stored is None:
                fresh = store_pb2.StoredSchema(version=self._schema.version)
                writer.put(META, _SCHEMA_KEY, value=fresh)
            elif stored.version != self._schema.version:
                raise PreconditionError(
                    f"the store in {self._path} has schema version {stored.version}, "
                    f"this program reads version {self._schema.version}",
                    reason="SCHEMA_UNKNOWN",
                    fix="use the version of muniment that wrote it",
                )


def _unreadable(folder: Path, why: str) -> MunimentError:
    return PreconditionError(
        f"the store in {folder} cannot be opened: {why}",
        reason="STORE_UNREADABLE",
        fix="stop any other process of this home with `muniment down`, and check the disk",
    )


def unexpected(table: Table[Any], key: object) -> MunimentError:
    """The error for a row that another row promised."""
    return InternalError(
        f"the row {key!r} of table {table.name} is missing",
        reason="STORE_INCONSISTENT",
        fix="restore the store from a backup",
    )
