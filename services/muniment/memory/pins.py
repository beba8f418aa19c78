"""Pins: rules in the user's words that hold in a project or in one of its sessions."""

from __future__ import annotations

import hashlib

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, NotFoundError
from muniment.kit.ids import IdMaker
from muniment.kit.names import NAME_LIMIT_BYTES, check_name
from muniment.kit.store import Reader, Writer
from muniment.kit.store.store import unexpected
from muniment.memory.episodes import count_tokens
from muniment.memory.limits import PIN_LIMIT_BYTES
from muniment.memory.projects import count_change, required_project
from muniment.memory.schema import PIN_SCOPES, PINS
from muniment.v1 import memory_pb2, store_pb2

__all__ = ["add_pin", "list_pins", "remove_pin"]

_LABELS = {
    memory_pb2.PIN_KIND_SAFETY_CONSTRAINT: "SAFETY CONSTRAINT",
    memory_pb2.PIN_KIND_USER_CORRECTION: "USER CORRECTION",
    memory_pb2.PIN_KIND_TASK_CONTRACT: "TASK CONTRACT",
}


def add_pin(
    writer: Writer,
    clock: Clock,
    ids: IdMaker,
    context: CallContext,
    request: memory_pb2.PinRequest,
) -> memory_pb2.PinResponse:
    """Pin the rule, or find it pinned.

    Raises:
        InvalidArgumentError: The text is empty or too long, or the kind unknown.
    """
    project_id = required_project(context)
    kind = request.kind or memory_pb2.PIN_KIND_TASK_CONTRACT
    content = _checked_content(kind, request)
    session_id = request.session_id if request.HasField("session_id") else ""
    digest = hashlib.sha256(content.encode()).digest()
    reference = writer.get(PIN_SCOPES, project_id, session_id, digest)
    if reference is not None:
        # A rule that is pinned again without a word of its kind keeps the one it has.
        return _pin_again(writer, reference.pin_id, kind if request.kind else None)
    pin = memory_pb2.PinnedRule(
        pin_id=ids.new("pin"),
        content=content,
        project_id=project_id,
        created_at=timestamp(clock),
    )
    _set_kind(pin, kind)
    if session_id:
        pin.session_id = session_id
    scope = store_pb2.StoredPinRef(pin_id=pin.pin_id)
    writer.put(PINS, pin.pin_id, value=store_pb2.StoredPin(pin=pin))
    writer.put(PIN_SCOPES, project_id, session_id, digest, value=scope)
    count_change(writer, clock, context, pins=1)
    return memory_pb2.PinResponse(pin=pin)


def _set_kind(pin: memory_pb2.PinnedRule, kind: memory_pb2.PinKind.ValueType) -> None:
    pin.kind = kind
    pin.rendered = f"[{_LABELS[kind]}] {pin.content}"
    pin.token_cost.CopyFrom(count_tokens(pin.rendered))


def _checked_content(kind: memory_pb2.PinKind.ValueType, request: memory_pb2.PinRequest) -> str:
    content = request.content.strip()
    if kind not in _LABELS:
        raise InvalidArgumentError(
            "must be one of safety_constraint, user_correction, task_contract",
            reason="PIN_KIND_UNKNOWN",
            field="kind",
        )
    if not content:
        raise InvalidArgumentError(
            "is empty", reason="CONTENT_EMPTY", field="content", fix="send the rule's text"
        )
    if len(content.encode()) > PIN_LIMIT_BYTES:
        raise InvalidArgumentError(
            f"is longer than {PIN_LIMIT_BYTES} bytes",
            reason="CONTENT_TOO_LONG",
            field="content",
            fix="pin the rule alone, and commit the rest as an episode",
        )
    check_name("session_id", request.session_id)
    return content


def _pin_again(
    writer: Writer, pin_id: str, kind: memory_pb2.PinKind.ValueType | None
) -> memory_pb2.PinResponse:
    pin = _stored_pin(writer, pin_id)
    response = memory_pb2.PinResponse(pin=pin, already_pinned=True)
    if kind is not None and pin.kind != kind:
        response.previous_kind = pin.kind
        _set_kind(response.pin, kind)
        writer.put(PINS, pin_id, value=store_pb2.StoredPin(pin=response.pin))
    return response


def remove_pin(
    writer: Writer, clock: Clock, context: CallContext, pin_id: str
) -> memory_pb2.UnpinResponse:
    """Take the pin away.

    Raises:
        NotFoundError: The project has no such pin in force.
    """
    project_id = required_project(context)
    stored = writer.get(PINS, pin_id) if len(pin_id.encode()) <= NAME_LIMIT_BYTES else None
    if stored is None or stored.HasField("removed_at") or stored.pin.project_id != project_id:
        raise NotFoundError(
            f"this project has no pin {pin_id:.100}",
            reason="PIN_UNKNOWN",
            field="pin_id",
            fix="`muniment pins` lists those in force",
        )
    pin = stored.pin
    stored.removed_at.CopyFrom(timestamp(clock))
    writer.put(PINS, pin_id, value=stored)
    digest = hashlib.sha256(pin.content.encode()).digest()
    writer.delete(PIN_SCOPES, project_id, pin.session_id, digest)
    count_change(writer, clock, context, pins=-1)
    return memory_pb2.UnpinResponse(pin=pin)


def list_pins(
    reader: Reader, project_id: str, session_id: str | None
) -> memory_pb2.ListPinsResponse:
    """The pins in force in the project and the session, by kind and age."""
    response = memory_pb2.ListPinsResponse()
    found: list[memory_pb2.PinnedRule] = []
    for key, reference in reader.scan(PIN_SCOPES, project_id):
        if key[1] in ("", session_id):
            found.append(_stored_pin(reader, reference.pin_id))
        else:
            response.other_sessions_pins += 1
    # Ids sort by time.
    response.pins.extend(sorted(found, key=lambda pin: (pin.kind, pin.pin_id)))
    return response


def _stored_pin(reader: Reader, pin_id: str) -> memory_pb2.PinnedRule:
    stored = reader.get(PINS, pin_id)
    if stored is None:
        raise unexpected(PINS, pin_id)
    return stored.pin
