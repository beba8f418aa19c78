"""Values and names of records, as the service takes them: checked where a file is read.

The service checks them again. Here they are checked so that a file is refused, or a row of it
told, before anything is sent, and with its place.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.nesting import is_deeper
from muniment.v1 import records_pb2

__all__ = [
    "BODY_LIMIT_BYTES",
    "BODY_LIMIT_DEPTH",
    "IDENTIFIER_LIMIT_CHARACTERS",
    "RefusedError",
    "check_record_size",
    "compact_json",
    "full_time",
    "kept_name",
    "kept_text",
    "name_of",
    "parsed_json",
    "place_of",
]

# Equal to those of the service's limits, which no other room imports; a test compares them.
BODY_LIMIT_BYTES = 1024 * 1024
BODY_LIMIT_DEPTH = 500
IDENTIFIER_LIMIT_CHARACTERS = 1024

_MESSAGE_OVERHEAD_BYTES = 1024

_NANOSECOND_DIGITS = 9


class RefusedError(ValueError):
    """A value cannot be kept; the text says why, without the value."""


def compact_json(value: Any) -> str:
    """The value as JSON without blanks, as bodies are kept.

    Raises:
        RefusedError: It is too long or nested too deep, or has what JSON or UTF-8 cannot carry.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise RefusedError(f"is nested deeper than {BODY_LIMIT_DEPTH} levels") from None
    except ValueError:
        raise RefusedError("has a number that JSON does not know") from None
    kept_text(text)
    if is_deeper(value, BODY_LIMIT_DEPTH):
        raise RefusedError(f"is nested deeper than {BODY_LIMIT_DEPTH} levels")
    return text


def parsed_json(text: str) -> Any:
    """What the JSON text (RFC 8259) says.

    Raises:
        RefusedError: It is none.
    """

    def refuse(name: str) -> NoReturn:
        raise RefusedError(f"has {name}, which JSON does not know")

    try:
        return json.loads(text, parse_constant=refuse)
    except RefusedError:
        raise
    except RecursionError:
        raise RefusedError(f"is nested deeper than {BODY_LIMIT_DEPTH} levels") from None
    except ValueError:
        raise RefusedError("is no JSON") from None


def kept_text(text: str) -> str:
    """The text itself.

    Raises:
        RefusedError: It is too long, or no Unicode.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise RefusedError("has half a surrogate pair") from None
    if size > BODY_LIMIT_BYTES:
        raise RefusedError(f"takes {size} bytes; a value has at most {BODY_LIMIT_BYTES}")
    return text


def kept_name(text: str) -> str:
    """The category, name, key or id itself.

    Raises:
        RefusedError: It is empty, too long, has control characters or is no Unicode.
    """
    if not text:
        raise RefusedError("is empty")
    if len(text) > IDENTIFIER_LIMIT_CHARACTERS:
        raise RefusedError(
            f"has {len(text)} characters; a name has at most {IDENTIFIER_LIMIT_CHARACTERS}"
        )
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise RefusedError("has a control character")
    return kept_text(text)


def check_record_size(record: records_pb2.Record) -> records_pb2.Record:
    """The record itself.

    Raises:
        RefusedError: Its values together are too long for a message.
    """
    most = MESSAGE_LIMIT_BYTES - _MESSAGE_OVERHEAD_BYTES
    if record.ByteSize() > most:
        raise RefusedError(f"takes {record.ByteSize()} bytes; a record has at most {most}")
    return record


def full_time(moment: Timestamp) -> str:
    """RFC 3339 in UTC, with nine digits behind the second."""
    seconds, _, fraction = moment.ToJsonString().removesuffix("Z").partition(".")
    return f"{seconds}.{fraction.ljust(_NANOSECOND_DIGITS, '0')}Z"


def name_of(record: records_pb2.Record) -> records_pb2.RecordName:
    """How the record is named."""
    match record.WhichOneof("record"):
        case "entity":
            entity = record.entity
            return records_pb2.RecordName(
                kind=records_pb2.RECORD_KIND_ENTITY, category=entity.category, key=entity.name
            )
        case "state":
            return records_pb2.RecordName(kind=records_pb2.RECORD_KIND_STATE, key=record.state.key)
        case "reference":
            return records_pb2.RecordName(
                kind=records_pb2.RECORD_KIND_REFERENCE, key=record.reference.key
            )
        case "event":
            return records_pb2.RecordName(kind=records_pb2.RECORD_KIND_JOURNAL, key=record.event.id)
        case _:
            return records_pb2.RecordName(
                kind=records_pb2.RECORD_KIND_ARCHIVE, key=record.archived.id
            )


def place_of(name: records_pb2.RecordName) -> str:
    """The name for people: `entity people/ann`, `state plan`."""
    kind = records_pb2.RecordKind.Name(name.kind).removeprefix("RECORD_KIND_").lower()
    return f"{kind} {name.category}/{name.key}" if name.category else f"{kind} {name.key}"
