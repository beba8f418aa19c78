"""A small store for tests: a table of every kind, stepped by the test, let go where it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from muniment.kit.clock import Clock
from muniment.kit.randomness import Randomness
from muniment.kit.store import (
    Protection,
    Reader,
    Schema,
    Store,
    StoreOptions,
    Table,
    Writer,
)
from muniment.kit.store.disk import Disk
from muniment.kit.store.keys import KeyPart
from muniment.kit.store.transaction import SUM_MODULUS
from muniment.v1 import store_pb2
from tests.support.rows import scan
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.stepped_loop import SteppedLoop

__all__ = [
    "COUNTS",
    "EVENTS",
    "LOOSE",
    "NOTES",
    "SCHEMA",
    "QuickDisk",
    "Stepped",
    "demand_sound",
    "protection",
    "text",
]

T = TypeVar("T")
_Key = tuple[KeyPart, ...]

NOTES: Table[store_pb2.StoredContent] = Table(
    "notes", store_pb2.StoredContent, in_feed=True, mutable=True
)
EVENTS: Table[store_pb2.StoredContent] = Table("events", store_pb2.StoredContent, in_feed=True)
COUNTS: Table[store_pb2.StoredContent] = Table("counts", store_pb2.StoredContent, mutable=True)
LOOSE: Table[store_pb2.StoredContent] = Table("loose", store_pb2.StoredContent)

SCHEMA = Schema(version=3, tables=(NOTES, EVENTS, COUNTS, LOOSE))

_MAP_LIMIT_BYTES = 256 * 1024**2


def text(value: str) -> store_pb2.StoredContent:
    """A row that says this."""
    return store_pb2.StoredContent(text=value)


def protection(*, sealed: bool = False, key: bytes = b"k" * 32, seed: int = 1) -> Protection:
    """Checks or seals rows, the same way in every run."""
    return Protection(key, sealed, SeededRandomness(seed))


class QuickDisk:
    """A disk that syncs nothing, whose environments can be let go as a killed process does."""

    def __init__(self) -> None:
        self.environments: list[lmdb.Environment] = []

    def open(self, folder: Path, *, map_bytes: int, tables: int) -> lmdb.Environment:
        """Open the environment in the folder."""
        environment = lmdb.open(
            str(folder), map_size=map_bytes, max_dbs=tables, sync=False, metasync=False
        )
        self.environments.append(environment)
        return environment

    def committing(self, environment: lmdb.Environment) -> None:
        """There is always room."""

    def committed(self, environment: lmdb.Environment) -> None:
        """The page cache is durable enough."""

    def let_go(self) -> None:
        """Close the files under whoever holds them."""
        while self.environments:
            self.environments.pop().close()


class Stepped:
    """A store that runs its batches when it is told to, in the test's thread."""

    def __init__(
        self,
        folder: Path,
        *,
        sealed: bool = False,
        schema: Schema = SCHEMA,
        disk: Disk | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of the store; its map limit has a default here."""
        self.loop = SteppedLoop()
        self.disk = disk or QuickDisk()
        self.clock = clock or FakeClock()
        options.setdefault("map_limit_bytes", _MAP_LIMIT_BYTES)
        self.store = Store(
            folder,
            schema,
            Protection(b"k" * 32, sealed, randomness or SeededRandomness()),
            StoreOptions(loop=self.loop, disk=self.disk, clock=self.clock, **options),
        )

    def step(self) -> None:
        """Commit and follow all that waits."""
        while self.loop.commit_batch() or self.loop.follow_batch():
            pass

    def run(self, change: Callable[[Writer], T]) -> T:
        """The change's result, once it is committed."""
        future = self.store.write(change)
        self.step()
        return future.result(timeout=0)

    def put(self, table: Table[store_pb2.StoredContent], *key: KeyPart, value: str) -> None:
        """Set the row of that key."""
        self.run(lambda writer: writer.put(table, *key, value=text(value)))

    def delete(self, table: Table[Any], *key: KeyPart) -> None:
        """Take the row away."""
        self.run(lambda writer: writer.delete(table, *key))

    def look(self, read: Callable[[Reader], T]) -> T:
        """What a reader finds."""
        with self.store.read() as reader:
            return read(reader)

    def rows(self, table: Table[store_pb2.StoredContent]) -> dict[_Key, str]:
        """All rows of a table of texts."""
        return self.look(lambda reader: {key: row.text for key, row in scan(reader, table)})

    def raw(self, change: Callable[[lmdb.Transaction, Mapping[str, Any]], T]) -> T:
        """What somebody does to the files who knows nothing of the store."""
        environment: lmdb.Environment = vars(self.store)["_environment"]
        names = [table.name for table in self.store.schema.all_tables()]
        databases = {name: environment.open_db(name.encode()) for name in names}
        with environment.begin(write=True) as transaction:
            return change(transaction, databases)

    def close(self) -> None:
        """Run what waits, and close."""
        self.store.close()

    def die(self) -> None:
        """Let the files go as they are."""
        assert isinstance(self.disk, QuickDisk)
        self.disk.let_go()


def demand_sound(store: Store) -> None:
    """Fail where state, sums and rows do not fit each other, or a row cannot be read."""
    with store.read() as reader:
        state = reader.state()
        assert not reader.doubts(), reader.doubts()
        for table in store.schema.all_tables():
            total = sum(
                store.protection.row_hash(table.name, address, raw)
                for address, raw in reader.raw_rows(table)
                if table.name != "meta"
            )
            assert (total % SUM_MODULUS).to_bytes(32, "big") == (
                state.sums[table.name] or bytes(32)
            ), table.name
            if table.name != "meta":
                assert sum(1 for _ in scan(reader, table)) == reader.count(table)
