"""What a tenant has of each kind, kept up with every change, and its cap."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from muniment.kit.errors import LimitError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.records.order import scope_of
from muniment.memory.records.schema import (
    ARCHIVE,
    CATEGORY_TOTALS,
    ENTITIES,
    ENTITY_ORDER,
    JOURNAL,
    REFERENCES,
    STATES,
    TOTALS,
    TOTALS_KEY,
)
from muniment.v1 import records_pb2, store_pb2

__all__ = [
    "Cap",
    "add_to_category",
    "add_to_totals",
    "believed_totals",
    "read_totals",
    "recounted",
    "size_of",
    "size_of_archived",
    "size_of_entity",
    "size_of_event",
    "size_of_reference",
    "size_of_state",
]

_log = structlog.get_logger()


@dataclass(frozen=True)
class Cap:
    """How much a tenant may keep."""

    limit_bytes: int | None
    """None for as much as there is room."""


def size_of(*parts: str) -> int:
    """What names and values count, in bytes of UTF-8."""
    return sum(len(part.encode()) for part in parts)


def size_of_entity(entity: records_pb2.Entity) -> int:
    """What an entity counts."""
    return size_of(entity.category, entity.name, entity.body_json, entity.status)


def size_of_archived(archived: records_pb2.ArchivedEntity) -> int:
    """What an archived entity counts."""
    return size_of_entity(archived.entity) + size_of(archived.reason)


def size_of_state(state: records_pb2.StateDocument) -> int:
    """What a state document counts."""
    return size_of(state.key, state.body_json)


def size_of_reference(reference: records_pb2.ReferenceDocument) -> int:
    """What a reference document counts."""
    return size_of(reference.key, reference.body, reference.metadata_json)


def size_of_event(event: records_pb2.JournalEvent) -> int:
    """What an event counts."""
    return size_of(event.evaluated_json, event.acted_json, event.forward_json, event.extra_json)


def read_totals(reader: Reader) -> store_pb2.StoredRecordTotals:
    """What there is; nothing of a tenant that has written nothing yet.

    Raises:
        TamperedError: The account cannot be believed.
    """
    return reader.get(TOTALS, TOTALS_KEY) or store_pb2.StoredRecordTotals()


def add_to_totals(
    writer: Writer,
    cap: Cap,
    *,
    grown_bytes: int,
    kind: records_pb2.RecordKind.ValueType,
    count: int,
) -> None:
    """Count a change that was written already, so that the feed has it.

    Raises:
        LimitError: It would bring the tenant over the cap; reason CAP_EXCEEDED.
    """
    totals = believed_totals(writer)
    used = max(0, totals.used_bytes + grown_bytes)
    if cap.limit_bytes is not None and grown_bytes > 0 and used > cap.limit_bytes:
        raise LimitError(
            f"This write would bring stored memory to {used / 1024:.1f} KB,"
            f" over the {cap.limit_bytes / 1024:.1f} KB cap.",
            reason="CAP_EXCEEDED",
            fix="purge what is archived (`muniment records purge`), or raise the setting"
            " records_cap_bytes; 0 turns it off",
        )
    totals.used_bytes = used
    match kind:
        case records_pb2.RECORD_KIND_ENTITY:
            totals.entities = max(0, totals.entities + count)
        case records_pb2.RECORD_KIND_STATE:
            totals.states = max(0, totals.states + count)
        case records_pb2.RECORD_KIND_REFERENCE:
            totals.references = max(0, totals.references + count)
        case records_pb2.RECORD_KIND_JOURNAL:
            totals.events = max(0, totals.events + count)
        case records_pb2.RECORD_KIND_ARCHIVE:
            totals.archived = max(0, totals.archived + count)
    writer.put(TOTALS, TOTALS_KEY, value=totals)


def add_to_category(writer: Writer, category: str, count: int) -> None:
    """Count entities of the category."""
    try:
        stored = writer.get(CATEGORY_TOTALS, category) or store_pb2.StoredCategoryTotal()
        stored.entities = max(0, stored.entities + count)
    except TamperedError:
        # The change that is being counted is among them already.
        places = writer.survey(ENTITY_ORDER, scope_of(category))
        stored = store_pb2.StoredCategoryTotal(entities=sum(1 for _ in places))
    if stored.entities:
        writer.put(CATEGORY_TOTALS, category, value=stored)
    else:
        writer.delete(CATEGORY_TOTALS, category)


def believed_totals(writer: Writer) -> store_pb2.StoredRecordTotals:
    """The account; made anew where it was changed from outside."""
    try:
        return read_totals(writer)
    except TamperedError as error:
        _log.error("the account of records is made anew", error=str(error))
    return recounted(writer)


def recounted(reader: Reader) -> store_pb2.StoredRecordTotals:
    """The account as the tables have it; what cannot be believed counts nothing."""
    totals = store_pb2.StoredRecordTotals()
    for _, entity in reader.survey(ENTITIES):
        if not isinstance(entity, TamperedError):
            totals.entities += 1
            totals.used_bytes += size_of_entity(entity.entity)
    for _, state in reader.survey(STATES):
        if not isinstance(state, TamperedError):
            totals.states += 1
            totals.used_bytes += size_of_state(state.state)
    for _, reference in reader.survey(REFERENCES):
        if not isinstance(reference, TamperedError):
            totals.references += 1
            totals.used_bytes += size_of_reference(reference.reference)
    for _, event in reader.survey(JOURNAL):
        if not isinstance(event, TamperedError):
            totals.events += 1
            totals.used_bytes += size_of_event(event)
    for _, archived in reader.survey(ARCHIVE):
        if not isinstance(archived, TamperedError):
            totals.archived += 1
            totals.used_bytes += size_of_archived(archived)
    return totals
