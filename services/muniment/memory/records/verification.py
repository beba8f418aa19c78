"""What a tenant's tables say of each other, and what their index should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf.message import Message

from muniment.kit.errors import TamperedError, UnavailableError
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.progress import Report
from muniment.kit.store import Reader, Table
from muniment.kit.store.findings import Findings, Kind, counted
from muniment.kit.store.keys import KeyPart
from muniment.memory.records.naming import index_key
from muniment.memory.records.order import counted_down, scope_of
from muniment.memory.records.schema import (
    ARCHIVE,
    CATEGORY_TOTALS,
    ENTITIES,
    ENTITY_ORDER,
    JOURNAL,
    RECORD_IDS,
    REFERENCES,
    STATES,
    TOTALS,
    TOTALS_KEY,
)
from muniment.memory.records.totals import recounted
from muniment.v1 import maintenance_pb2, records_pb2, store_pb2

__all__ = ["RecordChecks"]

_RESTORE = (
    "bring back a backup with `muniment restore`; without one, take what can be believed to a new"
    " home with `muniment records export` and `muniment records import`"
)

INDEX = "index"
"""What findings about the index have for a table."""

_KIND = maintenance_pb2.FindingKind
_ENTITY = records_pb2.RECORD_KIND_ENTITY
_JOURNAL = records_pb2.RECORD_KIND_JOURNAL

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class RecordChecks:
    """What a verification of a tenant's store has to know of records (`DomainChecks`)."""

    index: LexicalIndex
    read: Callable[[], AbstractContextManager[Reader]]
    settle: Callable[[], None]
    """Returns when the index has taken all that was committed before."""

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        """The row's key as a reader knows it: its names, or the id of an event."""
        if table in (JOURNAL.name, ARCHIVE.name) and key and isinstance(key[0], int):
            return f"number {counted_down(key[0])}"
        return " ".join(part.hex() if isinstance(part, bytes) else str(part) for part in key)

    def mend(self, kind: Kind, table: str, key: str) -> str:
        """What to do about a finding."""
        if table == INDEX:
            return "make the index anew with `muniment reindex`"
        if table in (ENTITIES.name, STATES.name, REFERENCES.name) and key:
            return (
                "write the record again, if you know what it was, or bring back a backup with"
                " `muniment restore`"
            )
        return _RESTORE

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        """Hold entities against their places, ids against what has them, counts against rows."""
        _RowCheck(reader, findings, report).run()

    def check_index(self, findings: Findings, report: Report) -> None:
        """Hold the index against what should be found."""
        try:
            wrong = self._differences(report)
            if wrong:
                # What was committed while they were looked at differs once and not twice.
                wrong &= self._differences(report)
        except UnavailableError as error:
            findings.add(_KIND.FINDING_KIND_INDEX_MISSING, INDEX, "", error.message)
            return
        for kind, key in sorted(wrong):
            told = (
                "it is there and cannot be found"
                if kind == _KIND.FINDING_KIND_INDEX_MISSING
                else "it can be found and is not there"
            )
            findings.add(kind, INDEX, key.replace("\x1f", " "), told)

    def _differences(self, report: Report) -> set[tuple[Kind, str]]:
        self.settle()
        with self.read() as reader:
            known = set(self.index.keys())
            # While it is made anew, what is older is not there yet.
            first = max(self.index.progress.below, 1)
            rows = _searchable(reader, report)
            missing = {key for key, order in rows.items() if order >= first and key not in known}
            surplus = known - set(rows)
        found = {(_KIND.FINDING_KIND_INDEX_MISSING, key) for key in missing}
        return found | {(_KIND.FINDING_KIND_INDEX_SURPLUS, key) for key in surplus}


def _searchable(reader: Reader, report: Report) -> dict[str, int]:
    """What should be found, by the index's key: its order."""
    found: dict[str, int] = {}
    total = reader.count(ENTITIES)
    for _, entity in counted(reader.survey(ENTITIES), "comparing the index", total, report):
        if not isinstance(entity, TamperedError):
            found[index_key(_ENTITY, entity.entity.category, entity.entity.name)] = entity.order
    for _, state in _believed(reader, STATES):
        found[index_key(records_pb2.RECORD_KIND_STATE, state.state.key)] = state.order
    for _, document in _believed(reader, REFERENCES):
        key = index_key(records_pb2.RECORD_KIND_REFERENCE, document.reference.key)
        found[key] = document.order
    for place, _ in _believed(reader, JOURNAL):
        order = counted_down(int(place[0]))
        found[index_key(_JOURNAL, str(order))] = order
    return found


def _believed(
    reader: Reader, table: Table[M], *prefix: KeyPart
) -> Iterator[tuple[tuple[KeyPart, ...], M]]:
    for key, value in reader.survey(table, *prefix):
        if not isinstance(value, TamperedError):
            yield key, value


@dataclass
class _RowCheck:
    reader: Reader
    findings: Findings
    report: Report
    categories: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        self._check_entities()
        self._check_places()
        self._check_ids()
        self._check_totals()

    def _check_entities(self) -> None:
        total = self.reader.count(ENTITIES)
        rows = self.reader.survey(ENTITIES)
        for _, stored in counted(rows, "comparing entities", total, self.report):
            if isinstance(stored, TamperedError):
                continue
            entity = stored.entity
            self.categories[entity.category] += 1
            for scope in (scope_of(None), scope_of(entity.category)):
                place = self._told(ENTITY_ORDER, scope, counted_down(stored.order))
                if place is not None and (place.category, place.name) != (
                    entity.category,
                    entity.name,
                ):
                    told = "another entity stands in its place in the order"
                    self._broken(ENTITY_ORDER, f"{entity.category} {entity.name}", told)

    def _check_places(self) -> None:
        total = self.reader.count(ENTITY_ORDER)
        rows = self.reader.survey(ENTITY_ORDER)
        for key, place in counted(rows, "comparing the order", total, self.report):
            if isinstance(place, TamperedError):
                continue
            stored = self._told(ENTITIES, place.category, place.name)
            if stored is not None and key[1] != counted_down(stored.order):
                told = "it is a place that its entity has left"
                self._broken(ENTITY_ORDER, f"{place.category} {place.name}", told)

    def _check_ids(self) -> None:
        for key, event in _believed(self.reader, JOURNAL):
            self._check_id(JOURNAL, event.id, int(key[0]))
        for key, archived in _believed(self.reader, ARCHIVE):
            self._check_id(ARCHIVE, archived.id, int(key[0]))
        for key, number in _believed(self.reader, RECORD_IDS):
            table: Table[Any] = JOURNAL if key[0] == JOURNAL.name else ARCHIVE
            if not self.reader.has(table, counted_down(number.number)):
                told = "the row that it leads to is gone"
                self._add(_KIND.FINDING_KIND_ROW_MISSING, table, str(key[1]), told)

    def _check_id(self, table: Table[Any], record_id: str, key: int) -> None:
        number = self._told(RECORD_IDS, table.name, record_id)
        if number is not None and number.number != counted_down(key):
            self._broken(RECORD_IDS, record_id, "it leads to another row")

    def _check_totals(self) -> None:
        try:
            kept = self.reader.get(TOTALS, TOTALS_KEY)
        except TamperedError:
            return
        there = recounted(self.reader)
        if kept is not None:
            for name in ("entities", "states", "references", "events", "archived", "used_bytes"):
                self._check_count(TOTALS, name, getattr(kept, name), getattr(there, name))
        for key, total in _believed(self.reader, CATEGORY_TOTALS):
            category = str(key[0])
            self._check_count(CATEGORY_TOTALS, category, total.entities, self.categories[category])

    def _check_count(self, table: Table[Any], name: str, kept: int, there: int) -> None:
        """Less than is kept may be there where rows cannot be believed; those are told already."""
        if kept < there or (kept > there and not self.findings.total):
            told = f"it counts {kept}, and there are {there}"
            self._add(_KIND.FINDING_KIND_COUNT_WRONG, table, name, told)

    def _told(self, table: Table[M], *key: KeyPart) -> M | None:
        """The row that another speaks of; None where it is missing or known to be bad."""
        try:
            found = self.reader.get(table, *key)
        except TamperedError:
            return None
        if found is None:
            name = " ".join(map(str, key))
            self._add(_KIND.FINDING_KIND_ROW_MISSING, table, name, "the row is gone")
        return found

    def _broken(self, table: Table[Any], name: str, told: str) -> None:
        self._add(_KIND.FINDING_KIND_REFERENCE_BROKEN, table, name, told)

    def _add(self, kind: Kind, table: Table[Any], name: str, told: str) -> None:
        self.findings.add(kind, table.name, name, told)
