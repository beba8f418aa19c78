"""Rows of another program's tables, as records: ids, times and status as they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.v1 import records_pb2
from muniment.workflows.record_values import (
    RefusedError,
    check_record_size,
    compact_json,
    kept_name,
    kept_text,
    parsed_json,
)

__all__ = ["READERS", "LeftOut", "RowReader"]

_SHOWN_NAME_CHARACTERS = 100


@dataclass(frozen=True)
class LeftOut:
    """A row that is no record."""

    table: str
    rowid: int
    name: str
    """Its first columns, for people; may have anything in it."""
    why: str


@dataclass(frozen=True)
class RowReader:
    """How a table is read."""

    columns: tuple[str, ...]
    age: str
    """The column by which its rows are in order."""
    named: int
    """How many of the columns name a row, for people."""
    make: Callable[[_Row], records_pb2.Record]

    def read(self, table: str, rowid: int, values: Sequence[Any]) -> records_pb2.Record | LeftOut:
        """The record that the row is, or why it is none."""
        row = _Row(dict(zip(self.columns, values, strict=True)))
        try:
            return check_record_size(self.make(row))
        except RefusedError as error:
            name = "/".join(_shown(value) for value in values[: self.named])
            return LeftOut(table, rowid, name[:_SHOWN_NAME_CHARACTERS], str(error))


def _shown(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


class _Row:
    """A row's values by column; each is refused by the column's name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def has(self, column: str) -> bool:
        return self._values[column] is not None

    def text(self, column: str) -> str:
        return self._checked(column, kept_text)

    def name(self, column: str) -> str:
        return self._checked(column, kept_name)

    def json(self, column: str) -> str:
        return self._checked(column, lambda text: compact_json(parsed_json(text)))

    def time(self, column: str) -> Timestamp:
        text = self._raw(column)
        moment = Timestamp()
        try:
            moment.FromJsonString(text)
        except ValueError:
            try:
                read = datetime.fromisoformat(text)
                moment.FromDatetime(read if read.tzinfo else read.replace(tzinfo=UTC))
            except (ValueError, OverflowError):
                raise RefusedError(f"{column} is no time") from None
        return moment

    def _checked(self, column: str, check: Callable[[str], str]) -> str:
        try:
            return check(self._raw(column))
        except RefusedError as error:
            told = str(error)
            raise RefusedError(
                told if told.startswith(f"{column} ") else f"{column} {told}"
            ) from None

    def _raw(self, column: str) -> str:
        value = self._values[column]
        if value is None:
            raise RefusedError(f"{column} is missing")
        if not isinstance(value, bytes):
            return str(value)
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise RefusedError(f"{column} is not UTF-8") from None


def _entity(row: _Row) -> records_pb2.Record:
    entity = records_pb2.Entity(
        id=row.name("id"),
        category=row.name("category"),
        name=row.name("name"),
        body_json=row.json("body"),
        created_at=row.time("created_at"),
        updated_at=row.time("updated_at"),
    )
    if row.has("status"):
        entity.status = row.text("status")
    return records_pb2.Record(entity=entity)


def _state(row: _Row) -> records_pb2.Record:
    state = records_pb2.StateDocument(
        key=row.name("document_key"), body_json=row.json("body"), updated_at=row.time("updated_at")
    )
    return records_pb2.Record(state=state)


def _reference(row: _Row) -> records_pb2.Record:
    metadata = row.json("metadata") if row.has("metadata") else "{}"
    if not metadata.startswith("{"):
        raise RefusedError("metadata is no object")
    reference = records_pb2.ReferenceDocument(
        key=row.name("doc_key"),
        body=row.text("body") if row.has("body") else "",
        metadata_json=metadata,
        updated_at=row.time("updated_at"),
    )
    return records_pb2.Record(reference=reference)


def _event(row: _Row) -> records_pb2.Record:
    event = records_pb2.JournalEvent(id=row.name("id"), ts=row.time("ts"))
    for part in ("evaluated", "acted", "forward", "extra"):
        if row.has(part):
            setattr(event, f"{part}_json", row.json(part))
    return records_pb2.Record(event=event)


def _archived(row: _Row) -> records_pb2.Record:
    """The other program keeps neither status nor times of what it archives.

    The time of archiving stands for both: no later one is true of it.
    """
    at = row.time("archived_at")
    archived = records_pb2.ArchivedEntity(
        id=row.name("id"),
        entity=records_pb2.Entity(
            id=row.name("original_entity_id") if row.has("original_entity_id") else row.name("id"),
            category=row.name("category"),
            name=row.name("name"),
            body_json=row.json("body") if row.has("body") else "{}",
            created_at=at,
            updated_at=at,
        ),
        archived_at=at,
    )
    if row.has("archive_reason"):
        archived.reason = row.text("archive_reason")
    return records_pb2.Record(archived=archived)


READERS: dict[str, RowReader] = {
    "entities": RowReader(
        ("category", "name", "id", "status", "body", "created_at", "updated_at"),
        "updated_at",
        2,
        _entity,
    ),
    "state_documents": RowReader(("document_key", "body", "updated_at"), "updated_at", 1, _state),
    "reference_documents": RowReader(
        ("doc_key", "body", "metadata", "updated_at"), "updated_at", 1, _reference
    ),
    "journal_events": RowReader(
        ("id", "ts", "evaluated", "acted", "forward", "extra"), "ts", 1, _event
    ),
    "archived_entities": RowReader(
        (
            *("category", "name", "id", "original_entity_id", "body"),
            *("archived_at", "archive_reason"),
        ),
        "archived_at",
        2,
        _archived,
    ),
}
"""Table → how it is read."""
