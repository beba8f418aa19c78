"""Pins: rules in the user's words that hold in a project or in one of its sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    InvalidArgumentError,
    NotFoundError,
    PreconditionError,
    TamperedError,
)
from muniment.kit.ids import IdMaker
from muniment.kit.names import NAME_LIMIT_BYTES, check_name
from muniment.kit.store import Reader, Writer, read_feed, unpack
from muniment.kit.store.tables import CHANGES
from muniment.kit.store.transaction import missing_row
from muniment.memory.counts import forget_cost
from muniment.memory.episodes import count_tokens
from muniment.memory.limits import PIN_LIMIT_BYTES
from muniment.memory.projects import count_change, recount, required_project
from muniment.memory.schema import PIN_SCOPES, PINS
from muniment.v1 import memory_pb2, store_pb2

__all__ = [
    "add_pin",
    "changed_pins",
    "find_pinned",
    "keep_pin",
    "list_pins",
    "pins_in_force",
    "remove_pin",
    "scope_of",
]

_WATCHED_AT_ONCE_CHANGES = 1000
"""Changes of the feed that are looked at in one moment."""

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

    What cannot be believed of it is written anew: its words are here again.

    Raises:
        InvalidArgumentError: The text is empty or too long, or the kind unknown.
    """
    project_id = required_project(context)
    kind = request.kind or memory_pb2.PIN_KIND_TASK_CONTRACT
    content = _checked_content(kind, request)
    pin = memory_pb2.PinnedRule(kind=kind, content=content, project_id=project_id)
    if request.session_id:
        pin.session_id = request.session_id
    try:
        pinned = find_pinned(writer, pin)
        again = None if pinned is None else _pin_again(writer, pinned, request.kind or None)
    except TamperedError:
        return _pin_anew(writer, clock, ids, pin)
    if again is not None:
        return again
    pin.pin_id = ids.new("pin")
    pin.created_at.CopyFrom(timestamp(clock))
    keep_pin(writer, pin)
    count_change(writer, clock, context, pins=1)
    return memory_pb2.PinResponse(pin=pin)


def _pin_anew(
    writer: Writer, clock: Clock, ids: IdMaker, pin: memory_pb2.PinnedRule
) -> memory_pb2.PinResponse:
    """Put the pin in force over rows that cannot be believed, under its id where one can."""
    old: str | None = None
    before: memory_pb2.PinnedRule | None = None
    try:
        old = find_pinned(writer, pin)
        before = None if old is None else _stored_pin(writer, old)
    except TamperedError:
        before = before or _in_force(writer, pin)
    pin.pin_id = before.pin_id if before else old or ids.new("pin")
    pin.created_at.CopyFrom(before.created_at if before else timestamp(clock))
    keep_pin(writer, pin)
    recount(writer, clock, pin.project_id)
    return memory_pb2.PinResponse(pin=pin, already_pinned=True)


def _in_force(reader: Reader, pin: memory_pb2.PinnedRule) -> memory_pb2.PinnedRule | None:
    """The pin in force of that scope and text, found without the table of scopes."""
    for _, stored in reader.survey(PINS):
        if (
            not isinstance(stored, TamperedError)
            and not stored.HasField("removed_at")
            and scope_of(stored.pin) == scope_of(pin)
        ):
            return stored.pin
    return None


def find_pinned(reader: Reader, pin: memory_pb2.PinnedRule) -> str | None:
    """The id of the pin in force that has the text in the same scope, or None."""
    reference = reader.get(PIN_SCOPES, *scope_of(pin))
    return reference.pin_id if reference else None


def keep_pin(writer: Writer, pin: memory_pb2.PinnedRule) -> None:
    """Put the pin in force, with what follows from its kind and text."""
    _set_kind(pin, pin.kind)
    scope = store_pb2.StoredPinRef(pin_id=pin.pin_id, session_id=pin.session_id)
    writer.put(PINS, pin.pin_id, value=store_pb2.StoredPin(pin=pin))
    writer.put(PIN_SCOPES, *scope_of(pin), value=scope)


def scope_of(pin: memory_pb2.PinnedRule) -> tuple[str, str, bytes]:
    """The key of the place where a text holds."""
    return pin.project_id, pin.session_id, hashlib.sha256(pin.content.encode()).digest()


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
    """Take the pin away, whether it can be believed or not.

    Raises:
        NotFoundError: The project has no such pin in force.
    """
    project_id = required_project(context)
    try:
        stored = writer.get(PINS, pin_id) if len(pin_id.encode()) <= NAME_LIMIT_BYTES else None
    except TamperedError:
        return _remove_tampered(writer, clock, project_id, pin_id)
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
    writer.delete(PIN_SCOPES, *scope_of(pin))
    forget_cost(writer, project_id, pin_id)
    count_change(writer, clock, context, pins=-1)
    return memory_pb2.UnpinResponse(pin=pin)


def _remove_tampered(
    writer: Writer, clock: Clock, project_id: str, pin_id: str
) -> memory_pb2.UnpinResponse:
    """Take away a pin of which only the id is known."""
    scopes = []
    for address, raw in writer.raw_rows(PIN_SCOPES):
        try:
            row = writer.open_row(PIN_SCOPES, address, raw)
        except TamperedError:
            continue
        # An older row that was put back is good enough to be taken away.
        if PIN_SCOPES.message.FromString(row.payload.value).pin_id == pin_id:
            scopes.append(row.key)
    writer.delete(PINS, pin_id)
    for scope in scopes:
        writer.delete(PIN_SCOPES, *scope)
    forget_cost(writer, project_id, pin_id)
    recount(writer, clock, project_id)
    return memory_pb2.UnpinResponse(pin=memory_pb2.PinnedRule(pin_id=pin_id, project_id=project_id))


def list_pins(
    reader: Reader, project_id: str, session_id: str | None
) -> memory_pb2.ListPinsResponse:
    """The pins in force in the project and the session, by kind and age.

    A pin whose row cannot be believed is counted, and never listed.
    """
    response = memory_pb2.ListPinsResponse(doubts=reader.doubts())
    found: list[memory_pb2.PinnedRule] = []
    for _, reference in reader.survey(PIN_SCOPES, project_id):
        if isinstance(reference, TamperedError):
            response.tampered_pins += 1
        elif reference.session_id not in ("", session_id):
            response.other_sessions_pins += 1
        else:
            try:
                found.append(_stored_pin(reader, reference.pin_id))
            except TamperedError:
                response.tampered_pins += 1
    # Ids sort by time.
    response.pins.extend(sorted(found, key=lambda pin: (pin.kind, pin.pin_id)))
    return response


def pins_in_force(
    reader: Reader, project_id: str | None = None
) -> Iterator[memory_pb2.PinnedRule | TamperedError]:
    """The pins in force in all sessions of the project, or of all projects.

    One that cannot be believed comes as its error.
    """
    prefix = () if project_id is None else (project_id,)
    for _, reference in reader.survey(PIN_SCOPES, *prefix):
        try:
            if isinstance(reference, TamperedError):
                raise reference
            yield _stored_pin(reader, reference.pin_id)
        except TamperedError as error:
            yield error


def changed_pins(
    reader: Reader, after: memory_pb2.WatchPosition | None
) -> memory_pb2.WatchPinsResponse:
    """The projects whose pins changed behind a position, up to now or nearly so.

    Without a position none has, and the answer says where to begin.
    """
    state = reader.state()
    response = memory_pb2.WatchPinsResponse()
    response.position.incarnation = state.incarnation
    response.position.position = state.position
    if after is None:
        return response
    try:
        if after.incarnation != state.incarnation:
            raise missing_row(CHANGES, after.position)
        page = read_feed(reader, after.position, _WATCHED_AT_ONCE_CHANGES)
    except (PreconditionError, TamperedError):
        response.missed = True
        return response
    response.position.position = page.position
    projects = (_project_of(reader, change) for _, change in page.changes)
    response.project_ids.extend(dict.fromkeys(one for one in projects if one))
    return response


def _project_of(reader: Reader, change: store_pb2.StoredChange) -> str | None:
    """The project whose pin that was, or None where it was no pin or is not known any more."""
    if change.table != PINS.name or not change.key:
        return None
    if change.HasField("before"):
        return store_pb2.StoredPin.FromString(change.before).pin.project_id
    try:
        stored = reader.get(PINS, *unpack(change.key))
    except TamperedError:
        return None
    return stored.pin.project_id if stored else None


def _stored_pin(reader: Reader, pin_id: str) -> memory_pb2.PinnedRule:
    stored = reader.get(PINS, pin_id)
    if stored is None or stored.HasField("removed_at"):
        raise missing_row(PINS, pin_id)
    return stored.pin
