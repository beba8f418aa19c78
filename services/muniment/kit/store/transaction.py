"""Transactions: typed reads that are checked, and writes that are recorded.

A reader sees one moment of the store. What it returns was written by this store, at that place;
what was not raises TamperedError and is never returned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import lmdb
from google.protobuf.message import Message

from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import TamperedError
from muniment.kit.store.chain import chain_hash
from muniment.kit.store.freshness import Entry, Freshness
from muniment.kit.store.journal import Journal
from muniment.kit.store.keys import KeyPart, begins_with, pack, unpack
from muniment.kit.store.protection import Protection, tampered
from muniment.kit.store.tables import CHANGES, META, STATE_KEY, Table
from muniment.v1 import store_pb2

__all__ = ["SUM_MODULUS", "Engine", "Reader", "Row", "Writer", "missing_row"]

M = TypeVar("M", bound=Message)

SUM_MODULUS = 1 << 256
"""Tables' sums are numbers below this (MSet-Add-Hash)."""


@dataclass(frozen=True)
class Engine:
    """What all transactions of a store share."""

    databases: Mapping[str, Any]
    """LMDB's handles by table name."""
    protection: Protection
    schema_version: int
    freshness: Freshness
    clock: Clock
    doubts: list[str]
    """What was found amiss when the store was opened, for people."""
    journal: Journal
    """Notes what is written while the store is copied."""


@dataclass(frozen=True)
class Row:
    """A row as LMDB has it, opened."""

    address: bytes
    payload: store_pb2.StoredPayload
    position: int

    @property
    def key(self) -> tuple[KeyPart, ...]:
        """The key's parts."""
        return unpack(self.payload.key or self.address)


class Reader:
    """A transaction's view of the tables: one moment of the store."""

    def __init__(self, engine: Engine, transaction: lmdb.Transaction, seen: int) -> None:
        """`seen` is a feed position that the store had reached before the transaction began."""
        self._engine = engine
        self._transaction = transaction
        self._seen = seen

    def get(self, table: Table[M], *key: KeyPart) -> M | None:
        """The row of that key, or None.

        Raises:
            TamperedError: The row is there and cannot be believed, or is gone and should not be.
        """
        row = self._row(table, self._engine.protection.address(*key))
        return None if row is None else table.message.FromString(row.payload.value)

    def survey(
        self, table: Table[M], *prefix: KeyPart, after: tuple[KeyPart, ...] | None = None
    ) -> Iterator[tuple[tuple[KeyPart, ...], M | TamperedError]]:
        """Rows whose keys begin with the prefix, in key order, from behind `after`.

        A row that cannot be believed, or is gone and should not be, comes as its error. In a
        sealed store the order of texts is arbitrary; that of numbers is kept.
        """
        protection = self._engine.protection
        found: set[bytes] = set()
        start = protection.address(*prefix)
        behind = protection.address(*after) if after else None
        for address, raw in self._stored(table, start, behind):
            found.add(address)
            try:
                row = self.open_row(table, address, raw)
                self._check_fresh(table, address, row)
            except TamperedError as error:
                yield (), error
                continue
            # A shortened key may stand under a prefix that is not its own.
            if (key := row.key)[: len(prefix)] == prefix:
                yield key, table.message.FromString(row.payload.value)
        if table.mutable and after is None:
            for address in self.missing(table, found, start):
                yield (), tampered(table.name, address)

    def has(self, table: Table[Any], *key: KeyPart) -> bool:
        """Whether anything stands at that key, be it to be believed or not."""
        return self.unopened(table, *key) is not None

    def unopened(self, table: Table[Any], *key: KeyPart) -> bytes | None:
        """The row of that key as LMDB has it: who opened the same bytes there before knows it."""
        return self.raw(table, self._engine.protection.address(*key))

    def raw(self, table: Table[Any], address: bytes) -> bytes | None:
        """The row at that address as LMDB has it, for verification."""
        raw = self._transaction.get(address, db=self._engine.databases[table.name])
        return None if raw is None else bytes(raw)

    def check_newest(self, table: Table[Any], address: bytes, position: int) -> None:
        """Hold the position of a mutable table's row against the newest that is known.

        Raises:
            TamperedError: It is an older row.
        """
        self._engine.freshness.check(table.name, address, position, self._seen)

    def lookup(self, table: Table[Any], address: bytes) -> Row | None:
        """The row at that address, held against its own check and nothing else.

        Raises:
            TamperedError: It fails its check.
        """
        raw = self.raw(table, address)
        return None if raw is None else self.open_row(table, address, raw)

    def last_row(self, table: Table[Any]) -> Row | None:
        """The row with the greatest key, of those that pass their check."""
        with self._transaction.cursor(db=self._engine.databases[table.name]) as cursor:
            found = cursor.last()
            while found:
                try:
                    return self.open_row(table, bytes(cursor.key()), bytes(cursor.value()))
                except TamperedError:
                    # Nobody of the house wrote it so.
                    found = cursor.prev()
        return None

    def last_number(self, table: Table[Any]) -> int:
        """The greatest key of a table that is keyed by a number; 0 where it is empty."""
        row = self.last_row(table)
        key = () if row is None else row.key
        return key[0] if len(key) == 1 and isinstance(key[0], int) else 0

    def newest_number(self, table: Table[Any]) -> int:
        """The number that was given last, be its row there or gone. It is not given again."""
        try:
            given = self.state().numbers.get(table.name, 0)
        except TamperedError:
            given = 0
        return given or self.last_number(table)

    def count(self, table: Table[Any]) -> int:
        """How many rows the table has."""
        return self._transaction.stat(self._engine.databases[table.name])["entries"]

    def state(self) -> store_pb2.StoredState:
        """What the newest transaction left.

        Raises:
            TamperedError: It was edited, put back to an older one or taken away.
        """
        state = self.get(META, STATE_KEY)
        if state is None:
            raise missing_row(META, STATE_KEY)
        return state

    def doubts(self) -> list[str]:
        """What is amiss with the store as a whole, as far as a glance tells, for people.

        Rows that are missing cannot be marked; who lists or counts says this with the answer.
        """
        try:
            state = self.state()
        except TamperedError:
            return ["the store's account of itself was changed from outside"]
        found = list(dict.fromkeys([*state.doubts, *self._engine.doubts]))
        for table, database in self._engine.databases.items():
            count = self._transaction.stat(database)["entries"]
            if table in state.rows and count != state.rows[table]:
                found.append(
                    f"table {table} has {count} rows where {state.rows[table]} were written"
                )
        return found

    def last_address(self, table: Table[Any]) -> bytes | None:
        """The greatest address of the table, whatever stands there; None where it is empty."""
        with self._transaction.cursor(db=self._engine.databases[table.name]) as cursor:
            return bytes(cursor.key()) if cursor.last() else None

    def raw_rows(
        self, table: Table[Any], after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Addresses and rows of the table as LMDB has them, from behind the address `after`."""
        with self._transaction.cursor(db=self._engine.databases[table.name]) as cursor:
            found = cursor.set_range(after or b"")
            if found and bytes(cursor.key()) == after:
                found = cursor.next()
            for key, value in cursor if found else ():
                yield bytes(key), bytes(value)

    def open_row(self, table: Table[Any], address: bytes, raw: bytes) -> Row:
        """A row of `raw_rows`, checked as `get` does."""
        row, payload = self._engine.protection.open_row(table.name, address, raw)
        return Row(address, payload, row.position)

    def _row(self, table: Table[Any], address: bytes) -> Row | None:
        row = self.lookup(table, address)
        self._check_fresh(table, address, row)
        return row

    def _check_fresh(self, table: Table[Any], address: bytes, row: Row | None) -> None:
        if table.mutable:
            position = None if row is None else row.position
            self._engine.freshness.check(table.name, address, position, self._seen)

    def missing(self, table: Table[Any], found: set[bytes], start: bytes = b"") -> list[bytes]:
        """Addresses under the prefix where a mutable table should have a row, if not found."""
        return self._engine.freshness.missing(table.name, start, found, self._seen)

    def _stored(
        self, table: Table[Any], start: bytes, after: bytes | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Addresses that begin so, from behind `after`, and what stands there."""
        with self._transaction.cursor(db=self._engine.databases[table.name]) as cursor:
            found = cursor.set_range(start if after is None else max(start, after))
            if found and bytes(cursor.key()) == after:
                found = cursor.next()
            while found and (address := bytes(cursor.key())).startswith(start):
                if begins_with(address, start):
                    yield address, bytes(cursor.value())
                found = cursor.next()


class Writer(Reader):
    """The transaction that changes the tables. Nothing of it is seen before it commits.

    It keeps the state (position, chain, sums) that `finish` writes. One writer serves several
    changes in turn; a change that fails after it wrote is undone with the whole transaction.
    """

    def __init__(
        self,
        engine: Engine,
        transaction: lmdb.Transaction,
        state: store_pb2.StoredState,
        fresh: Mapping[tuple[str, bytes], Entry],
        written_by: str,
    ) -> None:
        """Go on from the state, and the fresh rows, that earlier changes of the batch left."""
        super().__init__(engine, transaction, seen=state.position)
        self.written_by = written_by
        """Who the rows are from."""
        self.has_written = False
        """Whether anything was written since this was last set to False."""
        self.new_state = store_pb2.StoredState()
        """Complete, but for sums and counts of rows, after `settle`."""
        self.new_state.CopyFrom(state)
        self._totals: dict[str, tuple[int, int]] = {}
        """By table that was written: its sum and count of rows."""
        self.fresh = dict(fresh)
        """By table and address: what changed in mutable tables."""

    def put(self, table: Table[M], *key: KeyPart, value: M) -> None:
        """Set the row of that key."""
        self._write(table, key, value.SerializeToString(deterministic=True))

    def delete(self, table: Table[Any], *key: KeyPart) -> None:
        """Take the row away; nothing, where there is none."""
        self._write(table, key, None)

    def purge(self, table: Table[Any], *key: KeyPart) -> None:
        """As `delete`, but leave of the value no more than its digest, in the feed too."""
        self._write(table, key, None, keep_before=False)

    def purge_change(self, position: int, *, with_key: bool) -> None:
        """Leave of the value before, and of the key, no more than their digests in that change."""
        change = self.get(CHANGES, position)
        if change is None:
            return
        change.ClearField("before")
        if with_key and change.key:
            change.key_sha256 = hashlib.sha256(change.key).digest()
            change.key = b""
        self._write(CHANGES, (position,), change.SerializeToString(deterministic=True))

    def _check_fresh(self, table: Table[Any], address: bytes, row: Row | None) -> None:
        # What this transaction wrote itself is newer than the store's memory of it.
        if (table.name, address) not in self.fresh:
            super()._check_fresh(table, address, row)

    def missing(self, table: Table[Any], found: set[bytes], start: bytes = b"") -> list[bytes]:
        """As a reader's; but what this transaction wrote itself is as it should be."""
        own = {address for name, address in self.fresh if name == table.name}
        return super().missing(table, found | own, start)

    def _write(
        self,
        table: Table[Any],
        key: tuple[KeyPart, ...],
        value: bytes | None,
        *,
        keep_before: bool = True,
    ) -> None:
        database = self._engine.databases[table.name]
        packed = pack(*key)
        address = self._engine.protection.address_of_packed(packed)
        old = self._transaction.get(address, db=database)
        if value is None and old is None and not self._was_taken(table, address):
            return
        old = None if old is None else bytes(old)
        if table.in_feed:
            self._record(table, packed, address, old, value, keep_before=keep_before)
        if table.mutable:
            self.fresh[table.name, address] = self.new_state.position, value is not None
        raw = None
        self.has_written = True
        self._engine.journal.note(table.name, address)
        if value is None:
            self._transaction.delete(address, db=database)
        else:
            raw = self._closed(table, packed, address, value)
            self._transaction.put(address, raw, db=database)
        if table is not META:
            self._add_to_sum(table.name, address, old, raw)

    def _was_taken(self, table: Table[Any], address: bytes) -> bool:
        """Whether a row that is not there was taken away from outside."""
        own = (table.name, address) in self.fresh
        return not own and self._engine.freshness.expects(table.name, address)

    def _closed(self, table: Table[Any], packed: bytes, address: bytes, value: bytes) -> bytes:
        payload = store_pb2.StoredPayload(
            value=value,
            written_by=self.written_by,
            key=b"" if packed == address else packed,
        )
        row = store_pb2.StoredRow(
            position=self.new_state.position, schema_version=self._engine.schema_version
        )
        return self._engine.protection.close_row(
            table.name, address, row, payload.SerializeToString()
        )

    def _record(
        self,
        table: Table[Any],
        packed: bytes,
        address: bytes,
        old: bytes | None,
        value: bytes | None,
        *,
        keep_before: bool,
    ) -> None:
        change = store_pb2.StoredChange(
            table=table.name, key=packed, at=timestamp(self._engine.clock)
        )
        if old is not None:
            before = self._value_before(table, address, old)
            if before is not None:
                if keep_before:
                    change.before = before
                change.before_sha256 = hashlib.sha256(before).digest()
        if value is not None:
            change.after_sha256 = hashlib.sha256(value).digest()
        self.new_state.position += 1
        position = self.new_state.position
        change.chain = chain_hash(self.new_state.chain, position, change)
        self.new_state.chain = change.chain
        self._write(CHANGES, (position,), change.SerializeToString(deterministic=True))

    def _value_before(self, table: Table[Any], address: bytes, old: bytes) -> bytes | None:
        try:
            return self.open_row(table, address, old).payload.value
        except TamperedError:
            # It goes as it should; what stood there is nothing to remember.
            return None

    def _add_to_sum(self, table: str, address: bytes, old: bytes | None, new: bytes | None) -> None:
        protection = self._engine.protection
        total, count = self._totals.get(table) or (
            int.from_bytes(self.new_state.sums[table], "big"),
            self.new_state.rows[table],
        )
        if old is not None:
            total -= protection.row_hash(table, address, old)
            count -= 1
        if new is not None:
            total += protection.row_hash(table, address, new)
            count += 1
        # A row that somebody slipped in was never counted, so it is not counted off.
        self._totals[table] = total, max(count, 0)

    def settle(self) -> None:
        """Bring the new state's sums and counts up to what was written."""
        for table, (total, count) in self._totals.items():
            self.new_state.sums[table] = (total % SUM_MODULUS).to_bytes(32, "big")
            self.new_state.rows[table] = count

    def next_number(self, table: Table[Any]) -> int:
        """A key for the table that was never given, even to a row that is gone."""
        self.new_state.numbers[table.name] = self.newest_number(table) + 1
        return self.new_state.numbers[table.name]

    def newest_number(self, table: Table[Any]) -> int:
        """The number that was given last, be its row there or gone. It is not given again."""
        self.has_written = True
        if table.name not in self.new_state.numbers:
            self.new_state.numbers[table.name] = self.last_number(table)
        return self.new_state.numbers[table.name]

    def forget_before(self, first_kept: int, most: int) -> None:
        """Drop the changes before that position from the feed, about so many at most.

        Those behind the last one that can be believed stay, since the chain must go on from it.
        """
        begun = self.new_state.floor
        for position in range(begun + 1, first_kept):
            if self.new_state.floor - begun >= most:
                return
            try:
                change = self.get(CHANGES, position)
            except TamperedError:
                continue
            if change is None:
                continue
            for dropped in range(self.new_state.floor + 1, position + 1):
                self.delete(CHANGES, dropped)
            self.new_state.floor, self.new_state.floor_chain = position, change.chain

    def finish(self) -> None:
        """Write the state that the transaction leaves."""
        self.settle()
        self._write(META, (STATE_KEY,), self.new_state.SerializeToString(deterministic=True))


def missing_row(table: Table[Any], key: object) -> TamperedError:
    """The error for a row that another row promised."""
    return TamperedError(
        f"the row {key!r} of table {table.name} is missing",
        reason="ROW_MISSING",
        fix="run `muniment verify-store`",
    )
