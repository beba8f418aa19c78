"""Taking records that came from elsewhere, with their ids and times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from muniment.kit.errors import InvalidArgumentError, TamperedError
from muniment.kit.store import Writer
from muniment.memory.records.archive import put_archived
from muniment.memory.records.bodies import check_size, compact, parsed
from muniment.memory.records.changes import name_of, record_now
from muniment.memory.records.entities import put_entity
from muniment.memory.records.journal import put_event
from muniment.memory.records.limits import IDENTIFIER_LIMIT_CHARACTERS, IMPORT_KEPT_LISTED
from muniment.memory.records.naming import kind_name
from muniment.memory.records.references import put_reference
from muniment.memory.records.states import put_state
from muniment.memory.records.totals import Cap
from muniment.v1 import records_pb2

__all__ = ["Taken", "checked_record", "put_record", "take_record"]


@dataclass
class Taken:
    """What became of the records of an import."""

    taken: Counter[str] = field(default_factory=Counter)
    same: int = 0
    kept: list[records_pb2.RecordName] = field(default_factory=list)
    kept_total: int = 0

    def add(self, other: Taken) -> None:
        """Count another batch."""
        self.taken += other.taken
        self.same += other.same
        self.kept = (self.kept + other.kept)[:IMPORT_KEPT_LISTED]
        self.kept_total += other.kept_total


def take_record(writer: Writer, cap: Cap, record: records_pb2.Record, told: Taken) -> None:
    """Take the record, unless there is one of its name.

    Raises:
        LimitError: The tenant's cap.
    """
    name = name_of(record)
    try:
        present = record_now(writer, name)
    except TamperedError:
        present = None
    if present is None:
        put_record(writer, cap, record)
        told.taken[kind_name(name.kind)] += 1
    elif present == record:
        told.same += 1
    else:
        told.kept_total += 1
        if len(told.kept) < IMPORT_KEPT_LISTED:
            told.kept.append(name)


def put_record(writer: Writer, cap: Cap, record: records_pb2.Record) -> None:
    """Keep the record as it is.

    Raises:
        LimitError: The tenant's cap.
    """
    match record.WhichOneof("record"):
        case "entity":
            put_entity(writer, cap, record.entity)
        case "state":
            put_state(writer, cap, record.state)
        case "reference":
            put_reference(writer, cap, record.reference)
        case "event":
            put_event(writer, cap, record.event)
        case "archived":
            put_archived(writer, cap, record.archived)


def checked_record(record: records_pb2.Record) -> records_pb2.Record:
    """The record, with its JSON as it is kept.

    Raises:
        InvalidArgumentError: It has no kind or name, or a value that cannot be kept.
    """
    which = record.WhichOneof("record")
    if which is None:
        raise InvalidArgumentError("has no kind", reason="RECORD_KIND_UNKNOWN", field="record")
    name = name_of(record)
    for field_name, value in (("category", name.category), ("name", name.key)):
        empty = not value and (field_name == "name" or which == "entity")
        if empty or len(value) > IDENTIFIER_LIMIT_CHARACTERS or "\x1f" in value:
            raise InvalidArgumentError(
                f"of a record ({which}) is empty, over {IDENTIFIER_LIMIT_CHARACTERS} characters, or"
                " has the control character U+001F",
                reason="IDENTIFIER_FORBIDDEN",
                field=field_name,
            )
    checked = records_pb2.Record()
    checked.CopyFrom(record)
    if which == "entity":
        checked.entity.body_json = _json("body", record.entity.body_json)
    elif which == "archived":
        checked.archived.entity.body_json = _json("body", record.archived.entity.body_json)
    elif which == "state":
        checked.state.body_json = _json("body", record.state.body_json)
    elif which == "reference":
        check_size("body", record.reference.body)
        checked.reference.metadata_json = _json("metadata", record.reference.metadata_json or "{}")
    else:
        for part in ("evaluated_json", "acted_json", "forward_json", "extra_json"):
            if record.event.HasField(part):
                value = _json(part.removesuffix("_json"), getattr(record.event, part))
                setattr(checked.event, part, value)
    return checked


def _json(field_name: str, text: str) -> str:
    return check_size(field_name, compact(field_name, parsed(field_name, text)))
