"""What is indexed of records. Their number in the index is their place in the order of writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import structlog

from muniment.kit.errors import TamperedError
from muniment.kit.index.lexical import Document
from muniment.kit.store import FeedPage, Reader
from muniment.memory.records.entities import entities_in_order, find_entity
from muniment.memory.records.journal import event_value
from muniment.memory.records.naming import (
    KINDS_BY_TABLE,
    index_key,
    names_in_store,
    partition_of,
    split_key,
)
from muniment.memory.records.order import counted_down
from muniment.memory.records.schema import ENTITY_ORDER, JOURNAL, REFERENCES, STATES
from muniment.memory.records.texts import RecordText, record_text
from muniment.v1 import records_pb2, store_pb2

__all__ = ["RecordSource", "changed_keys", "entity_text"]

_ENTITY = records_pb2.RECORD_KIND_ENTITY
_STATE = records_pb2.RECORD_KIND_STATE
_REFERENCE = records_pb2.RECORD_KIND_REFERENCE
_JOURNAL = records_pb2.RECORD_KIND_JOURNAL

_JOURNAL_SERIES = "journal"
"""Events follow one another as the entities of a category do."""

_log = structlog.get_logger()


class RecordSource:
    """The source of a tenant's index."""

    def changed(self, reader: Reader, page: FeedPage) -> Iterator[Document]:
        """What became of the records that these changes are about."""
        for key in changed_keys(change for _, change in page.changes):
            yield self.document(reader, key)

    def at_once(self, reader: Reader) -> Iterator[Document]:
        """State and reference documents, of which there are few."""
        for _, state in reader.survey(STATES):
            if not isinstance(state, TamperedError):
                yield _state_document(state)
        for _, reference in reader.survey(REFERENCES):
            if not isinstance(reference, TamperedError):
                yield _reference_document(reference)

    def numbered(self, reader: Reader, numbers: range) -> Iterator[Document]:
        """Entities and events of these places."""
        least = min(numbers, default=0)
        for stored in entities_in_order(reader, None, counted_down(max(numbers, default=0) + 1)):
            if isinstance(stored, TamperedError):
                continue
            if stored.order < least:
                break
            yield _entity_document(stored)
        for order in numbers:
            if reader.has(JOURNAL, counted_down(order)):
                yield self.document(reader, index_key(_JOURNAL, str(order)))

    def newest_number(self, reader: Reader) -> int:
        """The newest write's place."""
        return reader.newest_number(ENTITY_ORDER)

    def is_gone(self, reader: Reader, document: Document) -> bool:
        """Whether the record was taken away, or written anew, since it was read."""
        now = self.document(reader, document.key)
        return now.gone or now.number != document.number

    def document(self, reader: Reader, key: str) -> Document:
        """What is indexed under that key; gone where there is nothing to be believed."""
        kind, names = split_key(key)
        try:
            found = _read(reader, kind, names)
        except TamperedError as error:
            _log.error("a record cannot be indexed", kind=kind, error=str(error))
            found = None
        return found or Document(key, "", gone=True)


def changed_keys(changes: Iterable[store_pb2.StoredChange]) -> Iterator[str]:
    """The index's keys of the records that these changes are about, each once."""
    for table, packed in dict.fromkeys((change.table, change.key) for change in changes):
        kind = KINDS_BY_TABLE.get(table)
        # The key of what was purged is gone from the feed; that was in the archive.
        if kind is not None and packed and (names := names_in_store(kind, packed)):
            yield index_key(kind, *names)


def entity_text(entity: records_pb2.Entity) -> str:
    """The text that is searched for in the entity."""
    return _entity_record_text(entity).text


def _read(
    reader: Reader, kind: records_pb2.RecordKind.ValueType, names: list[str]
) -> Document | None:
    if kind == _ENTITY:
        entity = find_entity(reader, *names)
        return None if entity is None else _entity_document(entity)
    if kind == _STATE:
        state = reader.get(STATES, *names)
        return None if state is None else _state_document(state)
    if kind == _REFERENCE:
        reference = reader.get(REFERENCES, *names)
        return None if reference is None else _reference_document(reference)
    order = int(names[0])
    event = reader.get(JOURNAL, counted_down(order))
    return None if event is None else _event_document(order, event)


def _entity_record_text(entity: records_pb2.Entity) -> RecordText:
    return record_text((entity.category, entity.name), json.loads(entity.body_json))


def _entity_document(stored: store_pb2.StoredEntity) -> Document:
    entity = stored.entity
    names = entity.category, entity.name
    text = _entity_record_text(entity)
    return _document(_ENTITY, names, text, stored.order, series=entity.category)


def _state_document(stored: store_pb2.StoredStateDocument) -> Document:
    text = record_text((stored.state.key,), json.loads(stored.state.body_json))
    return _document(_STATE, (stored.state.key,), text, stored.order)


def _reference_document(stored: store_pb2.StoredReference) -> Document:
    reference = stored.reference
    metadata = json.loads(reference.metadata_json)
    text = record_text((reference.key,), reference.body, more=metadata)
    return _document(_REFERENCE, (reference.key,), text, stored.order)


def _event_document(order: int, event: records_pb2.JournalEvent) -> Document:
    text = record_text((), event_value(event), is_event=True)
    return _document(_JOURNAL, (str(order),), text, order, series=_JOURNAL_SERIES)


def _document(
    kind: records_pb2.RecordKind.ValueType,
    names: tuple[str, ...],
    text: RecordText,
    order: int,
    series: str = "",
) -> Document:
    return Document(
        index_key(kind, *names),
        text.text,
        partition=partition_of(kind),
        place=order,
        number=order,
        series=series,
        values=text.values,
    )
