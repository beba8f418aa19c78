"""Verifies the feed: that it is whole and chained, and that the tables are what it led to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, MutableMapping

from google.protobuf.message import DecodeError

from muniment.kit.errors import TamperedError
from muniment.kit.progress import Report
from muniment.kit.store.chain import chain_hash
from muniment.kit.store.findings import Kind, counted
from muniment.kit.store.keys import KeyPart, as_number, unpack
from muniment.kit.store.protection import Protection
from muniment.kit.store.tables import CHANGES, Schema
from muniment.kit.store.transaction import Reader
from muniment.v1 import maintenance_pb2, store_pb2

__all__ = ["verify_feed"]

_KIND = maintenance_pb2.FindingKind

Add = Callable[[Kind, str, tuple[KeyPart, ...], str], None]


def verify_feed(
    reader: Reader,
    state: store_pb2.StoredState,
    schema: Schema,
    protection: Protection,
    bad: MutableMapping[tuple[str, bytes], tuple[KeyPart, ...]],
    add: Add,
    report: Report,
) -> set[tuple[str, bytes]]:
    """Follow the feed from its floor to its end, and hold the tables against it.

    Returns the tables and addresses of rows that were found to be missing.

    `bad` has the rows that fail their own check, by table and address. Where the feed knows the
    key of one, it is put there, since in a sealed store the address tells nothing.
    """
    check = _FeedCheck(reader, state, schema, protection, bad, add)
    step = "following the feed"
    for address, raw in counted(reader.raw_rows(CHANGES), step, reader.count(CHANGES), report):
        check.follow(address, raw)
    return check.end()


class _FeedCheck:
    def __init__(
        self,
        reader: Reader,
        state: store_pb2.StoredState,
        schema: Schema,
        protection: Protection,
        bad: MutableMapping[tuple[str, bytes], tuple[KeyPart, ...]],
        add: Add,
    ) -> None:
        self._reader = reader
        self._state = state
        self._tables = {table.name: table for table in schema.tables}
        self._protection = protection
        self._bad = bad
        self._add = add
        self._expected = state.floor + 1
        # Unknown behind a gap; the next change says how it goes on.
        self._chain: bytes | None = state.floor_chain or None
        self._broken_at = 0
        self._gone: dict[tuple[str, bytes], tuple[int, store_pb2.StoredChange]] = {}
        self._older: dict[tuple[str, bytes], tuple[int, store_pb2.StoredChange]] = {}

    def follow(self, address: bytes, raw: bytes) -> None:
        """Take the next entry."""
        position = as_number(address)
        if position is None or not self._state.floor < position <= self._state.position:
            self._broken(str(position or address.hex()), "an entry that is not of this feed")
            return
        self._miss(position - 1)
        self._expected = position + 1
        try:
            row = self._reader.open_row(CHANGES, address, raw)
        except TamperedError:
            self._broken(str(position), "the change fails its check")
            self._chain, self._broken_at = None, position
            return
        change = CHANGES.message.FromString(row.payload.value)
        if self._chain is not None and (chain_hash(self._chain, position, change) != change.chain):
            self._broken(str(position), "the change does not follow from the one before it")
        self._chain = change.chain
        if (
            change.HasField("before")
            and hashlib.sha256(change.before).digest() != change.before_sha256
        ):
            self._broken(str(position), "the value before is not that of its digest")
        if change.key and change.table in self._tables:
            self._hold(position, change)

    def end(self) -> set[tuple[str, bytes]]:
        """Take the end of the feed, and say which rows are not what it led to."""
        self._miss(self._state.position)
        if self._chain is not None and self._chain != self._state.chain:
            told = "the feed does not end as the store's account of itself says"
            self._broken(str(self._state.position), told)
        # Behind a break anything may have happened to a row.
        gone = {place: change for place, (at, change) in self._gone.items() if at > self._broken_at}
        for (table, _), change in gone.items():
            told = "the feed says that the row is there, and it is not"
            self._add(_KIND.FINDING_KIND_ROW_MISSING, table, unpack(change.key), told)
        for (table, _), (found, change) in self._older.items():
            told = (
                f"the row is that of change {found}, and the feed has a newer one"
                if change.HasField("after_sha256")
                else f"the row is that of change {found}; it was taken away later, and put back"
            )
            self._add(_KIND.FINDING_KIND_ROW_OLDER, table, unpack(change.key), told)
        return set(gone)

    def _hold(self, position: int, change: store_pb2.StoredChange) -> None:
        """Hold the change's row against it. A later change may still explain what is there."""
        place = change.table, self._protection.address_of_packed(change.key)
        if place in self._bad:
            self._bad[place] = unpack(change.key)
            return
        raw = self._reader.raw(self._tables[change.table], place[1])
        if raw is None:
            if change.HasField("after_sha256"):
                self._gone[place] = position, change
            else:
                self._gone.pop(place, None)
        elif (found := _position(raw)) < position:
            self._older[place] = found, change

    def _miss(self, last: int) -> None:
        """Note the changes up to that one that did not come."""
        first = self._expected
        if first > last:
            return
        which = f"{first}" if first == last else f"{first} to {last}"
        self._broken(which, "missing from the feed")
        self._expected, self._chain, self._broken_at = last + 1, None, last

    def _broken(self, which: str, found: str) -> None:
        self._add(_KIND.FINDING_KIND_FEED_BROKEN, CHANGES.name, (which,), found)


def _position(raw: bytes) -> int:
    try:
        return store_pb2.StoredRow.FromString(raw).position
    except DecodeError:
        return 0
