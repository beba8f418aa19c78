"""The lines of an export of records: JSON, one object a line, as docs/records.md describes them.

Writing is deterministic: fixed keys in a fixed order, so that the same records give the same lines.
Reading checks a line as a whole: every key, its type, and what the service takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.errors import InvalidArgumentError
from muniment.v1 import records_pb2
from muniment.workflows.record_values import (
    RefusedError,
    check_record_size,
    compact_json,
    full_time,
    kept_name,
    kept_text,
)

__all__ = ["Closing", "Header", "read_header", "read_line", "record_line"]

_FORMAT = "muniment-records"
_VERSION = 1

_SHA256 = re.compile(r"[0-9a-f]{64}")

_EVENT_PARTS = ("evaluated", "acted", "forward", "extra")

Object = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """The first line: what the file is and where it comes from."""

    exporter: str
    tenant: str
    incarnation: str
    position: int
    created_at: Timestamp

    def to_line(self) -> bytes:
        """The line."""
        return _line(
            {
                "kind": "header",
                "format": _FORMAT,
                "version": _VERSION,
                "exporter": self.exporter,
                "tenant": self.tenant,
                "incarnation": self.incarnation,
                "position": self.position,
                "created_at": full_time(self.created_at),
            }
        )


@dataclass(frozen=True)
class Closing:
    """The last line: what was before it, so that a file that was cut or edited is noticed."""

    records: int
    left_out: int
    """Records that failed their check and are not in the file."""
    sha256: bytes
    """Over the bytes of all lines before, ends of lines included."""

    def to_line(self) -> bytes:
        """The line."""
        return _line({"kind": "end", **vars(self), "sha256": self.sha256.hex()})


def record_line(record: records_pb2.Record) -> bytes:
    """The line of a record."""
    kind = record.WhichOneof("record")
    assert kind is not None
    return _line({"kind": kind} | _WRITERS[kind](getattr(record, kind)))


def _entity(entity: records_pb2.Entity) -> Object:
    said: Object = {"id": entity.id, "category": entity.category, "name": entity.name}
    if entity.HasField("status"):
        said["status"] = entity.status
    for field in ("created_at", "updated_at"):
        said |= _time(entity, field)
    return said | {"body": json.loads(entity.body_json)}


def _state(state: records_pb2.StateDocument) -> Object:
    return {"key": state.key} | _time(state, "updated_at") | {"body": json.loads(state.body_json)}


def _reference(reference: records_pb2.ReferenceDocument) -> Object:
    metadata = json.loads(reference.metadata_json or "{}")
    said: Object = {"key": reference.key} | _time(reference, "updated_at")
    return said | {"metadata": metadata, "body": reference.body}


def _event(event: records_pb2.JournalEvent) -> Object:
    said: Object = {"id": event.id} | _time(event, "ts")
    for part in _EVENT_PARTS:
        if event.HasField(f"{part}_json"):  # type: ignore[arg-type]
            said[part] = json.loads(getattr(event, f"{part}_json"))
    return said


def _archived(archived: records_pb2.ArchivedEntity) -> Object:
    said: Object = {"id": archived.id} | _time(archived, "archived_at")
    if archived.HasField("reason"):
        said["reason"] = archived.reason
    return said | {"entity": _entity(archived.entity)}


def _time(message: Any, field: str) -> Object:
    return {field: full_time(getattr(message, field))} if message.HasField(field) else {}


_WRITERS: dict[str, Callable[[Any], Object]] = {
    "entity": _entity,
    "state": _state,
    "reference": _reference,
    "event": _event,
    "archived": _archived,
}


def _line(said: Object) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_header(raw: bytes) -> Header:
    """What the first line says.

    Raises:
        InvalidArgumentError: It is that of no such file, or of another version of the format.
    """
    try:
        fields = _Fields(_parsed(raw))
        known = fields.text("kind") == "header" and fields.text("format") == _FORMAT
    except RefusedError:
        known = False
    if not known:
        raise InvalidArgumentError(
            "the file does not begin as an export of records does",
            reason="NOT_AN_EXPORT",
            field="line 1",
            fix=(
                "give a file that `muniment records export` wrote; `muniment import` takes projects"
            ),
        )
    try:
        version = fields.number("version")
        if version == _VERSION:
            header = Header(
                exporter=fields.text("exporter"),
                tenant=fields.text("tenant"),
                incarnation=fields.text("incarnation"),
                position=fields.number("position"),
                created_at=fields.moment("created_at"),
            )
            fields.end()
            return header
    except RefusedError as error:
        raise invalid_line(1, error) from error
    raise InvalidArgumentError(
        f"the file has version {version} of the format, this program reads {_VERSION}",
        reason="EXPORT_VERSION_UNKNOWN",
        field="line 1",
        fix="use the version of muniment that wrote it",
    )


def read_line(raw: bytes, number: int) -> records_pb2.Record | Closing:
    """What a line behind the first says; `number` is its place in the file.

    Raises:
        InvalidArgumentError: The line, or a key that is named, is not as it should be.
    """
    try:
        fields = _Fields(_parsed(raw))
        kind = fields.text("kind")
        read = _READERS.get(kind)
        if read is None:
            _refuse("kind", f"must be one of {', '.join(_READERS)}")
        found = read(fields)
        fields.end()
        return found if isinstance(found, Closing) else check_record_size(found)
    except RefusedError as error:
        raise invalid_line(number, error) from error


def invalid_line(number: int, error: RefusedError) -> InvalidArgumentError:
    """What is wrong with a line, as an error that names it."""
    return InvalidArgumentError(
        str(error),
        reason="EXPORT_LINE_INVALID",
        field=f"line {number}",
        fix="export again, or mend the line as docs/records.md describes it",
    )


def _parsed(raw: bytes) -> Object:
    try:
        said = json.loads(raw.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise RefusedError(f"is not UTF-8 at byte {error.start}") from None
    except RefusedError:
        raise
    except (ValueError, RecursionError):
        raise RefusedError("is not JSON") from None
    if not isinstance(said, dict):
        raise RefusedError("is not a JSON object")
    return said


def _no_constant(name: str) -> NoReturn:
    raise RefusedError(f"has {name}, which JSON does not know")


def _read_entity(fields: _Fields) -> records_pb2.Entity:
    entity = records_pb2.Entity(
        id=fields.name("id"),
        category=fields.name("category"),
        name=fields.name("name"),
        body_json=fields.json("body"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
    )
    if fields.has("status"):
        entity.status = fields.text("status")
    return entity


def _read_state(fields: _Fields) -> records_pb2.Record:
    state = records_pb2.StateDocument(
        key=fields.name("key"), body_json=fields.json("body"), updated_at=fields.time("updated_at")
    )
    return records_pb2.Record(state=state)


def _read_reference(fields: _Fields) -> records_pb2.Record:
    metadata = fields.take("metadata", dict, "an object")
    reference = records_pb2.ReferenceDocument(
        key=fields.name("key"),
        body=fields.text("body"),
        metadata_json=fields.checked("metadata", compact_json, metadata),
        updated_at=fields.time("updated_at"),
    )
    return records_pb2.Record(reference=reference)


def _read_event(fields: _Fields) -> records_pb2.Record:
    event = records_pb2.JournalEvent(id=fields.name("id"), ts=fields.time("ts"))
    for part in _EVENT_PARTS:
        if fields.has(part):
            setattr(event, f"{part}_json", fields.json(part))
    return records_pb2.Record(event=event)


def _read_archived(fields: _Fields) -> records_pb2.Record:
    inner = _Fields(fields.take("entity", dict, "an object"), within="entity.")
    archived = records_pb2.ArchivedEntity(
        id=fields.name("id"),
        archived_at=fields.time("archived_at"),
        entity=_read_entity(inner),
    )
    inner.end()
    if fields.has("reason"):
        archived.reason = fields.text("reason")
    return records_pb2.Record(archived=archived)


def _read_closing(fields: _Fields) -> Closing:
    digest = fields.text("sha256")
    if not _SHA256.fullmatch(digest):
        _refuse("sha256", "must be 64 hex digits")
    return Closing(
        records=fields.number("records"),
        left_out=fields.number("left_out"),
        sha256=bytes.fromhex(digest),
    )


_READERS: dict[str, Callable[[_Fields], records_pb2.Record | Closing]] = {
    "entity": lambda fields: records_pb2.Record(entity=_read_entity(fields)),
    "state": _read_state,
    "reference": _read_reference,
    "event": _read_event,
    "archived": _read_archived,
    "end": _read_closing,
}


class _Fields:
    """An object's fields, each taken once and checked."""

    def __init__(self, said: Object, within: str = "") -> None:
        self._said = said
        self._within = within

    def has(self, name: str) -> bool:
        return name in self._said

    def checked(self, name: str, check: Callable[[Any], str], value: Any) -> str:
        try:
            return check(value)
        except RefusedError as error:
            _refuse(self._within + name, str(error))

    def take(self, name: str, kind: type[Any], called: str) -> Any:
        value = self._said.pop(name, None)
        # A bool is an int to Python, and not to JSON.
        if type(value) is not kind:
            _refuse(self._within + name, f"must be {called}")
        return value

    def text(self, name: str) -> str:
        return self.checked(name, kept_text, self.take(name, str, "a text"))

    def name(self, name: str) -> str:
        return self.checked(name, kept_name, self.take(name, str, "a text"))

    def json(self, name: str) -> str:
        if name not in self._said:
            _refuse(self._within + name, "is missing")
        return self.checked(name, compact_json, self._said.pop(name))

    def number(self, name: str) -> int:
        value: int = self.take(name, int, "a whole number")
        if not 0 <= value < 1 << 64:
            _refuse(self._within + name, "must be from 0 to 2^64 - 1")
        return value

    def moment(self, name: str) -> Timestamp:
        moment = Timestamp()
        try:
            moment.FromJsonString(self.text(name))
        except ValueError:
            _refuse(self._within + name, "must be a time such as 2026-01-31T09:30:00.250000000Z")
        return moment

    def time(self, name: str) -> Timestamp | None:
        """A time that may be absent, where whoever wrote the record knew none."""
        return self.moment(name) if self.has(name) else None

    def end(self) -> None:
        """Refuse what is left: a field that is not read would be lost without a word."""
        for name in self._said:
            _refuse(self._within + name, "is no key of such a line")


def _refuse(field: str, message: str) -> NoReturn:
    raise RefusedError(f"{field} {message}")
