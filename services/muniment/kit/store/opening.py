"""Opening a store: its account of itself, and which rows of the mutable tables are the newest.

Whoever can write files may have put back older rows, changes or accounts while nobody looked, all
with good checks. What the sums of the account prove is believed; else what the feed proves; else
nothing, until it is written anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.kit.errors import TamperedError
from muniment.kit.store.chain import CHAIN_START, chain_hash
from muniment.kit.store.freshness import Freshness
from muniment.kit.store.keys import as_number
from muniment.kit.store.protection import Protection
from muniment.kit.store.tables import CHANGES, META, STATE_KEY, Schema, Table
from muniment.kit.store.transaction import SUM_MODULUS, Reader
from muniment.v1 import store_pb2

__all__ = ["Opening"]


@dataclass(frozen=True)
class _Row:
    """What is there at an address: where from, of what value, and what it adds to the sum."""

    position: int
    value_sha256: bytes
    weight: int


@dataclass(frozen=True)
class _Change:
    """The newest kept change of a key; no digest where it took the row away."""

    position: int
    after_sha256: bytes | None


_Newest = Mapping[tuple[str, bytes], _Change]


class Opening:
    """One look at a store, before anybody reads from it or writes to it."""

    def __init__(self, reader: Reader, schema: Schema, protection: Protection) -> None:
        self._reader = reader
        self._schema = schema
        self._protection = protection
        self._cached_rows: dict[str, dict[bytes, _Row]] = {}
        self.doubts: list[str] = []
        """What was found amiss, for people."""

    def state(self) -> tuple[store_pb2.StoredState, bool]:
        """The store's account of itself, and whether it has to be written anew.

        One that does not fit the feed and the rows is mended so that writing can go on; what it
        said of the tables then proves nothing any more.
        """
        found = self._found_state()
        tables = [table for table in self._schema.all_tables() if table is not META]
        if found is None and not any(self._reader.count(table) for table in tables):
            return store_pb2.StoredState(chain=CHAIN_START, floor_chain=CHAIN_START), True
        last = self._reader.last_number(CHANGES)
        newest = self._reader.lookup(CHANGES, self._protection.address(last)) if last else None
        chain = CHANGES.message.FromString(newest.payload.value).chain if newest else b""
        doubt = self._doubt(found, last, chain)
        if found is not None and doubt is None:
            return found, False
        state = store_pb2.StoredState()
        if found is not None:
            state.CopyFrom(found)
        self._mend(state, last, chain, is_newest=found is not None and found.position > last)
        if doubt is not None and doubt not in state.doubts:
            state.doubts.append(doubt)
        return state, True

    def learn(self, state: store_pb2.StoredState, freshness: Freshness) -> None:
        """Teach which rows of the mutable tables are the newest, as far as it can be known."""
        address = self._protection.address(STATE_KEY)
        account = self._reader.lookup(META, address)
        if account is not None:
            freshness.learn(META.name, address, account.position, present=True)
        doubtful: dict[Table[Any], dict[bytes, _Row]] = {}
        for table in self._schema.tables:
            if not table.mutable:
                continue
            rows = self._rows(table)
            if _sum(rows.values()) == _stored_sum(state, table):
                proven = rows
            else:
                self.doubts.append(f"rows of table {table.name} were changed from outside")
                # Nothing but the sum tells about a table outside the feed.
                proven = {} if table.in_feed else rows
                if table.in_feed:
                    doubtful[table] = rows
            for address, row in proven.items():
                freshness.learn(table.name, address, row.position, present=True)
        if doubtful:
            newest, broken_at = self._newest_changes(state, [table.name for table in doubtful])
            sure_after = max(state.floor, state.unproven_position, broken_at)
            for table, rows in doubtful.items():
                self._learn_doubtful(state, freshness, table, rows, newest, sure_after)

    # --- The account

    def _found_state(self) -> store_pb2.StoredState | None:
        try:
            row = self._reader.lookup(META, self._protection.address(STATE_KEY))
        except TamperedError:
            return None
        return None if row is None else META.message.FromString(row.payload.value)

    def _doubt(self, state: store_pb2.StoredState | None, last: int, chain: bytes) -> str | None:
        """Why the account cannot be right, where it cannot."""
        if state is None:
            return "the store's account of itself was edited or taken away"
        if last > state.position or self._greatest_position() > state.position:
            return "an older account of the store was put in place of its own"
        if last < state.position and state.position > state.floor:
            return f"changes {last + 1} to {state.position} are gone from the end of the feed"
        if last > state.floor and chain != state.chain:
            return "the feed does not end as the store's account says"
        return None

    def _greatest_position(self) -> int:
        """The newest position that a row has, as far as a glance tells."""
        positions = [0]
        for table in self._schema.tables:
            if table.mutable:
                positions += (row.position for row in self._rows(table).values())
            elif (row := self._reader.last_row(table)) is not None:
                positions.append(row.position)
        return max(positions)

    def _mend(
        self, state: store_pb2.StoredState, last: int, chain: bytes, *, is_newest: bool
    ) -> None:
        """Make an account from which writing can go on; `is_newest`: but for the feed it fits."""
        position = max(last, state.position, self._greatest_position())
        if not is_newest or position > state.position:
            # Sums of an older account could prove older rows; no account, nothing.
            state.sums.clear()
        if not state.incarnation:
            state.floor = self._first_kept() - 1 if last else position
            state.floor_chain = b""
        if last > state.position or not state.chain:
            state.chain = chain or CHAIN_START
        state.position = state.unproven_position = position
        for table in self._schema.all_tables():
            if table is not META:
                state.rows[table.name] = self._reader.count(table)
        for name, number in self._greatest_numbers().items():
            state.numbers[name] = max(state.numbers[name], number)

    def _first_kept(self) -> int:
        for address, raw in self._reader.raw_rows(CHANGES):
            if self._change(address, raw) is not None:
                return as_number(address) or 1
        return 1

    def _greatest_numbers(self) -> dict[str, int]:
        """By table that is keyed by a number: the greatest that rows and feed speak of."""
        numbers: dict[str, int] = {}
        for table in self._schema.tables:
            row = self._reader.last_row(table)
            if row is not None and len(row.key) == 1 and isinstance(row.key[0], int):
                numbers[table.name] = row.key[0]
        for address, raw in self._reader.raw_rows(CHANGES):
            change = self._change(address, raw)
            number = as_number(change.key) if change is not None else None
            if change is not None and number is not None:
                numbers[change.table] = max(numbers.get(change.table, 0), number)
        return numbers

    # --- The newest rows

    def _rows(self, table: Table[Any]) -> dict[bytes, _Row]:
        """Rows of the table that pass their check, by address."""
        if table.name in self._cached_rows:
            return self._cached_rows[table.name]
        rows = self._cached_rows[table.name] = dict[bytes, _Row]()
        for address, raw in self._reader.raw_rows(table):
            try:
                row = self._reader.open_row(table, address, raw)
            except TamperedError:
                continue
            digest = hashlib.sha256(row.payload.value).digest()
            weight = self._protection.row_hash(table.name, address, raw)
            rows[address] = _Row(row.position, digest, weight)
        return rows

    def _newest_changes(
        self, state: store_pb2.StoredState, tables: Sequence[str]
    ) -> tuple[_Newest, int]:
        """The newest kept change of each key, and the last place where the feed is not whole."""
        newest: dict[tuple[str, bytes], _Change] = {}
        broken_at, expected = 0, state.floor + 1
        chain = state.floor_chain or None
        for address, raw in self._reader.raw_rows(CHANGES):
            position = as_number(address)
            if position is None or not state.floor < position <= state.position:
                continue
            change = self._change(address, raw)
            if change is None:
                broken_at, chain, expected = position, None, position + 1
                continue
            if position != expected:
                broken_at, chain = position - 1, None
            if chain is not None and chain_hash(chain, position, change) != change.chain:
                broken_at = position
            chain, expected = change.chain, position + 1
            if change.table in tables and change.key:
                after = change.after_sha256 if change.HasField("after_sha256") else None
                key = change.table, self._protection.address_of_packed(change.key)
                newest[key] = _Change(position, after)
        if expected <= state.position or chain != state.chain:
            broken_at = state.position
        return newest, broken_at

    def _change(self, address: bytes, raw: bytes) -> store_pb2.StoredChange | None:
        try:
            row = self._reader.open_row(CHANGES, address, raw)
        except TamperedError:
            return None
        return CHANGES.message.FromString(row.payload.value)

    def _learn_doubtful(
        self,
        state: store_pb2.StoredState,
        freshness: Freshness,
        table: Table[Any],
        rows: Mapping[bytes, _Row],
        newest: _Newest,
        sure_after: int,
    ) -> None:
        """Learn the rows that the feed proves, and of the rest what it says should be there."""
        expected = {
            address: change for (name, address), change in newest.items() if name == table.name
        }
        standing = {
            address: row
            for address, row in rows.items()
            if _fits(row, expected.get(address), state.floor)
        }
        is_whole = all(
            address in standing
            for address, change in expected.items()
            if change.after_sha256 is not None
        )
        all_proven = is_whole and _sum(standing.values()) == _stored_sum(state, table)
        for address, row in standing.items():
            if all_proven or row.position > sure_after:
                freshness.learn(table.name, address, row.position, present=True)
        for address, change in expected.items():
            if address not in standing:
                present = change.after_sha256 is not None
                freshness.learn(table.name, address, change.position, present=present)


def _fits(row: _Row, change: _Change | None, floor: int) -> bool:
    """Whether the row is what the newest kept change left, or older than all that is kept."""
    if change is None:
        return row.position <= floor
    return (row.position, row.value_sha256) == (change.position, change.after_sha256)


def _sum(rows: Iterable[_Row]) -> int:
    return sum(row.weight for row in rows) % SUM_MODULUS


def _stored_sum(state: store_pb2.StoredState, table: Table[Any]) -> int:
    return int.from_bytes(state.sums.get(table.name, b""), "big")
