"""The tables of a tenant's records."""

from __future__ import annotations

from muniment.kit.index.dense_vectors import VECTORS
from muniment.kit.store import Schema, Table
from muniment.kit.stores import RECORDS
from muniment.v1 import records_pb2, store_pb2

__all__ = [
    "ARCHIVE",
    "CATEGORY_TOTALS",
    "ENTITIES",
    "ENTITY_ORDER",
    "JOURNAL",
    "RECORD_IDS",
    "REFERENCES",
    "SCHEMA",
    "STATES",
    "TOTALS",
    "TOTALS_KEY",
]

ENTITIES: Table[store_pb2.StoredEntity] = Table(
    "entities", store_pb2.StoredEntity, in_feed=True, mutable=True
)
"""category, name → entity."""

ENTITY_ORDER: Table[store_pb2.StoredEntityPlace] = Table(
    "entity_order", store_pb2.StoredEntityPlace
)
"""scope, order counted down → the entity that was written there, newest first."""

STATES: Table[store_pb2.StoredStateDocument] = Table(
    "states", store_pb2.StoredStateDocument, in_feed=True, mutable=True
)
"""key → state document."""

REFERENCES: Table[store_pb2.StoredReference] = Table(
    "references", store_pb2.StoredReference, in_feed=True, mutable=True
)
"""key → reference document."""

JOURNAL: Table[records_pb2.JournalEvent] = Table("journal", records_pb2.JournalEvent, in_feed=True)
"""order → event. Never rewritten."""

ARCHIVE: Table[records_pb2.ArchivedEntity] = Table(
    "archive", records_pb2.ArchivedEntity, in_feed=True, mutable=True
)
"""order → an entity that was forgotten."""

RECORD_IDS: Table[store_pb2.StoredRecordNumber] = Table("record_ids", store_pb2.StoredRecordNumber)
"""table, id → the order of an event or archived entity."""

TOTALS: Table[store_pb2.StoredRecordTotals] = Table(
    "record_totals", store_pb2.StoredRecordTotals, mutable=True
)
"""One row: what there is of each kind."""

TOTALS_KEY = "totals"

CATEGORY_TOTALS: Table[store_pb2.StoredCategoryTotal] = Table(
    "category_totals", store_pb2.StoredCategoryTotal, mutable=True
)
"""category → how many entities it has; none where it has none."""

SCHEMA = Schema(
    version=RECORDS.version,
    tables=(
        ENTITIES,
        ENTITY_ORDER,
        STATES,
        REFERENCES,
        JOURNAL,
        ARCHIVE,
        RECORD_IDS,
        TOTALS,
        CATEGORY_TOTALS,
        VECTORS,
    ),
)
