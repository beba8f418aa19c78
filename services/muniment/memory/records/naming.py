"""How records are named in the index and in the feed."""

from __future__ import annotations

from muniment.kit.index.lexical import scope
from muniment.kit.store import unpack
from muniment.memory.records.order import counted_down
from muniment.memory.records.schema import ARCHIVE, ENTITIES, JOURNAL, REFERENCES, STATES
from muniment.v1 import records_pb2

__all__ = [
    "KINDS_BY_TABLE",
    "SEARCHED_KINDS",
    "index_key",
    "kind_name",
    "names_in_store",
    "partition_of",
    "split_key",
]

_BETWEEN = "\x1f"
"""Unit separator; what may be written as a name has no control character, and what came from
elsewhere is split from the left."""

KINDS_BY_TABLE = {
    ENTITIES.name: records_pb2.RECORD_KIND_ENTITY,
    STATES.name: records_pb2.RECORD_KIND_STATE,
    REFERENCES.name: records_pb2.RECORD_KIND_REFERENCE,
    JOURNAL.name: records_pb2.RECORD_KIND_JOURNAL,
    ARCHIVE.name: records_pb2.RECORD_KIND_ARCHIVE,
}

SEARCHED_KINDS = (
    records_pb2.RECORD_KIND_ENTITY,
    records_pb2.RECORD_KIND_STATE,
    records_pb2.RECORD_KIND_REFERENCE,
    records_pb2.RECORD_KIND_JOURNAL,
)


def kind_name(kind: records_pb2.RecordKind.ValueType) -> str:
    """The kind as the tools call it: `entity`, `state`, `reference`, `journal`, `archive`."""
    return records_pb2.RecordKind.Name(kind).removeprefix("RECORD_KIND_").lower()


def partition_of(kind: records_pb2.RecordKind.ValueType) -> str:
    """The index's partition of that kind."""
    return scope("records", kind_name(kind))


def index_key(kind: records_pb2.RecordKind.ValueType, *names: str) -> str:
    """The index's key: the kind and the names (an event's is its order)."""
    return _BETWEEN.join((kind_name(kind), *names))


def names_in_store(kind: records_pb2.RecordKind.ValueType, packed: bytes) -> tuple[str, ...] | None:
    """The names in the index of what has that key in the store; None for what is not searched."""
    if kind == records_pb2.RECORD_KIND_ARCHIVE:
        return None
    parts = unpack(packed)
    if kind == records_pb2.RECORD_KIND_JOURNAL:
        return (str(counted_down(int(parts[0]))),)
    return tuple(map(str, parts))


def split_key(key: str) -> tuple[records_pb2.RecordKind.ValueType, list[str]]:
    """The kind and the names of an index's key."""
    kind, _, names = key.partition(_BETWEEN)
    value = records_pb2.RecordKind.Value(f"RECORD_KIND_{kind.upper()}")
    if value == records_pb2.RECORD_KIND_ENTITY:
        return value, names.split(_BETWEEN, 1)
    return value, [names]
