"""Proves that a store is what it wrote: its account of itself, its rows and its feed.

It looks at one moment, while the store goes on. What a row says of other rows is for the service
whose store it is, which brings its own checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from muniment.kit.errors import TamperedError
from muniment.kit.progress import Report
from muniment.kit.store.findings import Findings, Kind, counted
from muniment.kit.store.keys import KeyPart, unpack
from muniment.kit.store.protection import Protection
from muniment.kit.store.schemas import SCHEMA_ADDRESS
from muniment.kit.store.store import Store
from muniment.kit.store.tables import CHANGES, META, STATE_KEY, Schema, Table
from muniment.kit.store.transaction import SUM_MODULUS, Reader, Row
from muniment.kit.store.verify_feed import verify_feed
from muniment.v1 import maintenance_pb2, store_pb2

__all__ = ["DomainChecks", "Verified", "verify_store"]

_STARTS_OVER_LIMIT = 5
"""How often a verification gives way to who needs the store alone, before it is finished first."""

_KIND = maintenance_pb2.FindingKind


class DomainChecks(Protocol):
    """What a service knows of its own tables."""

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        """The row's key as a reader knows it."""
        ...

    def mend(self, kind: Kind, table: str, key: str) -> str | None:
        """What to do about a finding, where it is more than to bring back a backup."""
        ...

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        """Hold the rows against each other. Those that fail their own check are known already."""
        ...

    def check_index(self, findings: Findings, report: Report) -> None:
        """Hold what is derived from the store against it. Called while no moment is held."""
        ...


@dataclass(frozen=True)
class Verified:
    """What was looked at, and what was found."""

    state: store_pb2.StoredState
    rows: int
    changes: int
    findings: Findings


class _WantedError(Exception):
    """Somebody waits until nobody reads from the store."""


def verify_store(store: Store, domain: DomainChecks, report: Report) -> Verified:
    """Verify the store at one moment, then what is derived from it.

    It begins again when the store has to grow or is rearranged meanwhile. `report` may raise, which
    ends it.
    """
    starts = 0

    def watchful(step: str, done: int, total: int) -> None:
        report(step, done, total)
        if store.is_wanted and starts < _STARTS_OVER_LIMIT:
            raise _WantedError

    while True:
        starts += 1
        findings = Findings(domain.mend)
        try:
            with store.moment() as (reader, state):
                look = _Look(reader, state, store.schema, store.protection, findings, watchful)
                rows = look.run(domain.name)
                domain.check_rows(reader, state, findings, watchful)
                verified = Verified(state, rows, reader.count(CHANGES), findings)
        except _WantedError:
            continue
        domain.check_index(findings, report)
        return verified


class _Look:
    """One way through all tables at one moment."""

    def __init__(
        self,
        reader: Reader,
        state: store_pb2.StoredState,
        schema: Schema,
        protection: Protection,
        findings: Findings,
        report: Report,
    ) -> None:
        self._reader = reader
        self._state = state
        self._schema = schema
        self._protection = protection
        self._findings = findings
        self._report = report
        self._bad: dict[tuple[str, bytes], tuple[KeyPart, ...]] = {}
        self._unproven: list[tuple[str, tuple[KeyPart, ...]]] = []
        self._missing: dict[tuple[str, bytes], tuple[KeyPart, ...]] = {}

    def run(self, name: Callable[[Reader, str, tuple[KeyPart, ...]], str]) -> int:
        """Look at everything. How many rows that was."""

        def add(kind: Kind, table: str, key: tuple[KeyPart, ...], found: str) -> None:
            self._findings.add(kind, table, name(self._reader, table, key), found)

        self._add = add
        self._check_account()
        rows = sum(
            self._check_table(table) for table in self._schema.all_tables() if table is not META
        )
        known = verify_feed(
            self._reader, self._state, self._schema, self._protection, self._bad, add, self._report
        )
        for place, key in self._missing.items():
            if place not in known:
                add(_KIND.FINDING_KIND_ROW_MISSING, place[0], key, "the row is gone")
        for (table, _), key in self._bad.items():
            # What is wrong with the feed was told already.
            if table != CHANGES.name:
                add(_KIND.FINDING_KIND_ROW_TAMPERED, table, key, "the row fails its check")
        for table, key in self._unproven:
            told = "the row is an older one that was put back, or cannot be shown to be the newest"
            add(_KIND.FINDING_KIND_ROW_OLDER, table, key, told)
        return rows

    # --- The store's own account

    def _check_account(self) -> None:
        address = self._protection.address(STATE_KEY)
        for found, raw in self._reader.raw_rows(META):
            if found == SCHEMA_ADDRESS:
                self._check_schema(raw)
            elif found != address:
                told = "a row that no store has"
                self._findings.add(_KIND.FINDING_KIND_ROW_UNKNOWN, META.name, found.hex(), told)
        try:
            row = self._reader.lookup(META, address)
        except TamperedError:
            self._doubt("the store's account of itself fails its check")
        else:
            self._check_state(row)
        for doubt in self._state.doubts:
            self._doubt(f"when the store was opened: {doubt}")

    def _check_schema(self, raw: bytes) -> None:
        expected = store_pb2.StoredSchema(
            version=self._schema.version,
            key_id=self._protection.key_id,
            sealed=self._protection.sealed,
        )
        if raw != expected.SerializeToString(deterministic=True):
            told = "what the store says of its shape and key is not what it was opened by"
            self._findings.add(_KIND.FINDING_KIND_SCHEMA, META.name, "schema", told)

    def _check_state(self, row: Row | None) -> None:
        if row is None:
            self._doubt("the store's account of itself is missing")
            return
        found = store_pb2.StoredState.FromString(row.payload.value)
        if found != self._state:
            self._doubt(
                f"the store's account of itself is that of change {found.position}; this service"
                f" wrote another one, of change {self._state.position}"
            )

    def _doubt(self, found: str) -> None:
        self._findings.add(_KIND.FINDING_KIND_STATE_MISMATCH, META.name, "", found)

    # --- Rows

    def _check_table(self, table: Table[Any]) -> int:
        total = count = 0
        found: set[bytes] = set()
        expected = self._reader.count(table)
        for address, raw in counted(
            self._reader.raw_rows(table), f"checking table {table.name}", expected, self._report
        ):
            count += 1
            if table.mutable:
                found.add(address)
            total += self._protection.row_hash(table.name, address, raw)
            try:
                row = self._reader.open_row(table, address, raw)
            except TamperedError:
                self._bad[table.name, address] = _parts(address)
                continue
            if table is not CHANGES:
                self._check_row(table, address, row)
        if table.mutable:
            for address in self._reader.missing(table, found):
                self._missing[table.name, address] = _parts(address)
        stored = int.from_bytes(self._state.sums.get(table.name, b""), "big")
        if total % SUM_MODULUS != stored:
            wrote = self._state.rows.get(table.name, count)
            told = (
                f"the {count} rows are not, taken together, those that the store wrote"
                if wrote == count
                else f"{count} rows are there where the store wrote {wrote}"
            )
            self._findings.add(_KIND.FINDING_KIND_SUM_MISMATCH, table.name, "", told)
        return count

    def _check_row(self, table: Table[Any], address: bytes, row: Row) -> None:
        if row.position > self._state.position:
            told = (
                f"the row is of change {row.position}, and the store has come to"
                f" {self._state.position}: it is from another copy of the store"
            )
            self._add(_KIND.FINDING_KIND_ROW_UNKNOWN, table.name, row.key, told)
            return
        if table.in_feed and row.position > self._state.floor:
            self._check_origin(table, address, row)
        if table.mutable:
            try:
                self._reader.check_newest(table, address, row.position)
            except TamperedError:
                self._unproven.append((table.name, row.key))

    def _check_origin(self, table: Table[Any], address: bytes, row: Row) -> None:
        """Hold a row against the change that made it."""
        try:
            made = self._reader.lookup(CHANGES, self._protection.address(row.position))
        except TamperedError:
            made = None
        if made is None:
            return  # The feed is broken there, which is told of the feed.
        change = CHANGES.message.FromString(made.payload.value)
        packed = row.payload.key or address
        is_of_table = change.table == table.name
        if is_of_table and change.key_sha256 == hashlib.sha256(packed).digest():
            told = f"the row of change {row.position} was purged, and put back"
            self._add(_KIND.FINDING_KIND_ROW_OLDER, table.name, row.key, told)
        elif not is_of_table or change.key != packed:
            told = f"change {row.position} of the feed made another row, and none made this"
            self._add(_KIND.FINDING_KIND_ROW_UNKNOWN, table.name, row.key, told)
        elif change.after_sha256 != hashlib.sha256(row.payload.value).digest():
            told = f"change {row.position} of the feed left another value"
            self._add(_KIND.FINDING_KIND_FEED_ROW_MISMATCH, table.name, row.key, told)


def _parts(address: bytes) -> tuple[KeyPart, ...]:
    """A key's parts as far as they can be read: texts of a sealed store are digests."""
    try:
        return unpack(address)
    except ValueError:
        return (address,)
