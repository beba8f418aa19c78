"""The journal: what happened, in order, never rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.records.bodies import check_size, compact
from muniment.memory.records.entities import page_limit
from muniment.memory.records.limits import LIST_PAGE_BYTES
from muniment.memory.records.order import counted_down, next_order
from muniment.memory.records.schema import JOURNAL, RECORD_IDS
from muniment.memory.records.totals import Cap, add_to_totals, size_of_event
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2, store_pb2

__all__ = ["event_value", "find_event", "new_event", "put_event", "read_journal"]


def new_event(
    stamp: Stamp, kind: str, body: dict[str, Any], category: str | None, name: str | None
) -> records_pb2.JournalEvent:
    """An event of that kind, about an entity where one is named.

    Raises:
        InvalidArgumentError: It is too large.
    """
    acted = compact("acted", {"kind": kind, "body": body})
    event = records_pb2.JournalEvent(
        id=stamp.new_id(), ts=stamp.now(), acted_json=check_size("acted", acted)
    )
    about = {
        field: value
        for field, value in (("category", category), ("name", name))
        if value is not None
    }
    if about:
        event.extra_json = check_size("name", compact("name", about))
    return event


def put_event(writer: Writer, cap: Cap, event: records_pb2.JournalEvent) -> None:
    """Append the event.

    Raises:
        LimitError: The tenant's cap.
    """
    order = next_order(writer)
    writer.put(JOURNAL, counted_down(order), value=event)
    number = store_pb2.StoredRecordNumber(number=order)
    writer.put(RECORD_IDS, JOURNAL.name, event.id, value=number)
    kind = records_pb2.RECORD_KIND_JOURNAL
    add_to_totals(writer, cap, grown_bytes=size_of_event(event), kind=kind, count=1)


def find_event(reader: Reader, event_id: str) -> records_pb2.JournalEvent | None:
    """The event of that id, or None.

    Raises:
        TamperedError: It cannot be believed.
    """
    number = reader.get(RECORD_IDS, JOURNAL.name, event_id)
    found = reader.get(JOURNAL, counted_down(number.number)) if number else None
    return found if found is not None and found.id == event_id else None


def event_value(event: records_pb2.JournalEvent) -> Mapping[str, Any]:
    """The event's four values, null where it has none."""
    return {
        "evaluated": _value(event.evaluated_json),
        "acted": _value(event.acted_json),
        "forward": _value(event.forward_json),
        "extra": _value(event.extra_json),
    }


def read_journal(
    reader: Reader, request: records_pb2.ReadJournalRequest
) -> records_pb2.ReadJournalResponse:
    """A page of events, newest first."""
    response = records_pb2.ReadJournalResponse()
    after = (counted_down(request.cursor),) if request.HasField("cursor") else None
    wanted = _wanted(request)
    last = size = 0
    for key, event in reader.survey(JOURNAL, after=after):
        if isinstance(event, TamperedError):
            response.tampered += 1
        elif wanted(event):
            size += event.ByteSize()
            full = len(response.events) == page_limit(request.limit) or size > LIST_PAGE_BYTES
            if full and response.events:
                response.next_cursor = last
                break
            last = counted_down(int(key[0]))
            response.events.append(event)
    return response


def _wanted(
    request: records_pb2.ReadJournalRequest,
) -> Callable[[records_pb2.JournalEvent], bool]:
    asked = {
        field: getattr(request, field)
        for field in ("category", "name", "kind")
        if request.HasField(field)
    }

    def wanted(event: records_pb2.JournalEvent) -> bool:
        if not asked:
            return True
        about = _value(event.extra_json)
        acted = _value(event.acted_json)
        has = {
            **(about if isinstance(about, dict) else {}),
            "kind": acted.get("kind") if isinstance(acted, dict) else None,
        }
        return all(has.get(field) == value for field, value in asked.items())

    return wanted


def _value(text: str) -> Any:
    # An absent value is empty, and no JSON is.
    return json.loads(text) if text else None
