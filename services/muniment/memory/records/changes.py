"""What changed, and a record as it was."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.kit.errors import InvalidArgumentError, TamperedError
from muniment.kit.store import Reader, read_feed, unpack
from muniment.kit.store.tables import CHANGES
from muniment.memory.records.archive import archived_entity
from muniment.memory.records.entities import find_entity
from muniment.memory.records.journal import find_event
from muniment.memory.records.limits import LIST_PAGE_BYTES
from muniment.memory.records.naming import KINDS_BY_TABLE
from muniment.memory.records.order import counted_down
from muniment.memory.records.schema import ARCHIVE, ENTITIES, JOURNAL, REFERENCES, STATES
from muniment.v1 import records_pb2, store_pb2

__all__ = ["all_records", "in_messages", "name_of", "read_changes", "record_at", "record_now"]

_LOOK_CHANGES = 1000
"""Changes that are looked at together."""

_Record = records_pb2.Record


def read_changes(
    reader: Reader, after: int, limit: int
) -> tuple[list[records_pb2.RecordChange], int]:
    """What changed behind a position, up to so many changes of the feed; and where to go on.

    Raises:
        PreconditionError: The feed does not reach back so far, or has not come so far.
        TamperedError: A change cannot be believed.
    """
    page = read_feed(reader, after, limit)
    changes = []
    for position, change in page.changes:
        kind = KINDS_BY_TABLE.get(change.table)
        if kind is None:
            continue
        told = records_pb2.RecordChange(
            position=position,
            kind=kind,
            at=change.at,
            existed=change.HasField("before_sha256"),
            exists=change.HasField("after_sha256"),
            before_sha256=change.before_sha256,
            after_sha256=change.after_sha256,
        )
        if change.HasField("before"):
            told.before.CopyFrom(_stored_record(change.table, change.before))
        told.name.CopyFrom(_name(reader, change, told))
        changes.append(told)
    return changes, page.position


def in_messages(
    changes: list[records_pb2.RecordChange], position: int
) -> Iterator[tuple[list[records_pb2.RecordChange], int]]:
    """The changes in parts that messages hold, each with the position to go on from."""
    part: list[records_pb2.RecordChange] = []
    size = 0
    for change in changes:
        size += change.ByteSize()
        if part and size > LIST_PAGE_BYTES:
            yield part, part[-1].position
            part, size = [], change.ByteSize()
        part.append(change)
    yield part, position


def record_at(reader: Reader, name: records_pb2.RecordName, position: int) -> _Record | None:
    """The record as it was when the feed had come to that position.

    Raises:
        PreconditionError: As `read_changes`.
        TamperedError: It cannot be told.
    """
    state = reader.state()
    at = position
    while at < state.position:
        changes, at = read_changes(reader, at, _LOOK_CHANGES)
        for change in changes:
            if change.name == name:
                return change.before if change.HasField("before") else None
    if position > state.position:
        read_feed(reader, position, 1)  # It says what is wrong.
    return record_now(reader, name)


def record_now(reader: Reader, name: records_pb2.RecordName) -> _Record | None:
    """The record, or None.

    Raises:
        InvalidArgumentError: The kind is none.
        TamperedError: It cannot be believed.
    """
    if name.kind == records_pb2.RECORD_KIND_ENTITY:
        entity = find_entity(reader, name.category, name.key)
        return None if entity is None else _Record(entity=entity.entity)
    if name.kind == records_pb2.RECORD_KIND_STATE:
        state = reader.get(STATES, name.key)
        return None if state is None else _Record(state=state.state)
    if name.kind == records_pb2.RECORD_KIND_REFERENCE:
        reference = reader.get(REFERENCES, name.key)
        return None if reference is None else _Record(reference=reference.reference)
    if name.kind == records_pb2.RECORD_KIND_JOURNAL:
        event = find_event(reader, name.key)
        return None if event is None else _Record(event=event)
    if name.kind == records_pb2.RECORD_KIND_ARCHIVE:
        archived = archived_entity(reader, name.key)
        return None if archived is None else _Record(archived=archived)
    raise InvalidArgumentError(
        "must be entity, state, reference, journal or archive",
        reason="RECORD_KIND_UNKNOWN",
        field="kind",
    )


def all_records(reader: Reader) -> Iterator[_Record | TamperedError]:
    """Every record of the moment: kind after kind, each as its records were written.

    Who takes them in this order has them in the order that lists and journals show.
    """
    for kind in (_entities, _states, _references, _events, _archived):
        ordered = []
        for found in kind(reader):
            if isinstance(found, TamperedError):
                yield found
            else:
                ordered.append(found)
        ordered.sort(key=lambda one: one[0])
        yield from (record for _, record in ordered)


_Placed = Iterator[tuple[int, _Record] | TamperedError]
"""Records with the order of their writing."""


def _entities(reader: Reader) -> _Placed:
    for _, row in reader.survey(ENTITIES):
        yield (row if isinstance(row, TamperedError) else (row.order, _Record(entity=row.entity)))


def _states(reader: Reader) -> _Placed:
    for _, row in reader.survey(STATES):
        yield row if isinstance(row, TamperedError) else (row.order, _Record(state=row.state))


def _references(reader: Reader) -> _Placed:
    for _, row in reader.survey(REFERENCES):
        yield (
            row if isinstance(row, TamperedError) else (row.order, _Record(reference=row.reference))
        )


def _events(reader: Reader) -> _Placed:
    for key, row in reader.survey(JOURNAL):
        yield (
            row
            if isinstance(row, TamperedError)
            else (counted_down(int(key[0])), _Record(event=row))
        )


def _archived(reader: Reader) -> _Placed:
    for key, row in reader.survey(ARCHIVE):
        yield (
            row
            if isinstance(row, TamperedError)
            else (counted_down(int(key[0])), _Record(archived=row))
        )


def name_of(record: _Record) -> records_pb2.RecordName:
    """How the record is named."""
    which = record.WhichOneof("record")
    if which == "entity":
        return records_pb2.RecordName(
            kind=records_pb2.RECORD_KIND_ENTITY,
            category=record.entity.category,
            key=record.entity.name,
        )
    if which == "state":
        return records_pb2.RecordName(kind=records_pb2.RECORD_KIND_STATE, key=record.state.key)
    if which == "reference":
        return records_pb2.RecordName(
            kind=records_pb2.RECORD_KIND_REFERENCE, key=record.reference.key
        )
    if which == "event":
        return records_pb2.RecordName(kind=records_pb2.RECORD_KIND_JOURNAL, key=record.event.id)
    return records_pb2.RecordName(kind=records_pb2.RECORD_KIND_ARCHIVE, key=record.archived.id)


def _name(
    reader: Reader, change: store_pb2.StoredChange, told: records_pb2.RecordChange
) -> records_pb2.RecordName:
    if told.HasField("before"):
        return name_of(told.before)
    if not change.key:
        return records_pb2.RecordName(kind=told.kind)  # It was purged.
    parts = unpack(change.key)
    if change.table == ENTITIES.name:
        return records_pb2.RecordName(kind=told.kind, category=str(parts[0]), key=str(parts[1]))
    if change.table in (STATES.name, REFERENCES.name):
        return records_pb2.RecordName(kind=told.kind, key=str(parts[0]))
    if change.table == JOURNAL.name:
        event = reader.get(JOURNAL, *parts)
        return records_pb2.RecordName(kind=told.kind, key=event.id if event else "")
    archived = reader.get(ARCHIVE, *parts) or _archived_before(reader, change.key, told.position)
    return records_pb2.RecordName(kind=told.kind, key=archived.id if archived else "")


def _archived_before(reader: Reader, key: bytes, after: int) -> records_pb2.ArchivedEntity | None:
    """What stood at a key of the archive, as the change tells that took it away."""
    for position in range(after + 1, reader.state().position + 1):
        change = reader.get(CHANGES, position)
        if change is not None and change.table == ARCHIVE.name and change.key == key:
            return records_pb2.ArchivedEntity.FromString(change.before) if change.before else None
    return None


def _stored_record(table: str, value: bytes) -> _Record:
    if table == ENTITIES.name:
        return _Record(entity=store_pb2.StoredEntity.FromString(value).entity)
    if table == STATES.name:
        return _Record(state=store_pb2.StoredStateDocument.FromString(value).state)
    if table == REFERENCES.name:
        return _Record(reference=store_pb2.StoredReference.FromString(value).reference)
    if table == JOURNAL.name:
        return _Record(event=records_pb2.JournalEvent.FromString(value))
    return _Record(archived=records_pb2.ArchivedEntity.FromString(value))
