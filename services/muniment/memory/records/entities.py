"""Entities: what is kept under a category and a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from muniment.kit.errors import NotFoundError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.records.identifiers import spellings
from muniment.memory.records.limits import (
    LIST_DEFAULT_RECORDS,
    LIST_LIMIT_RECORDS,
    LIST_PAGE_BYTES,
)
from muniment.memory.records.order import counted_down, next_order, scope_of
from muniment.memory.records.schema import CATEGORY_TOTALS, ENTITIES, ENTITY_ORDER
from muniment.memory.records.totals import (
    Cap,
    add_to_category,
    add_to_totals,
    read_totals,
    size_of_entity,
)
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2, store_pb2

__all__ = [
    "Wanted",
    "as_kept",
    "cut",
    "entities_in_order",
    "find_entity",
    "known_entity",
    "list_entities",
    "page_limit",
    "put_entity",
    "remember",
    "take_entity",
]


@dataclass(frozen=True)
class Wanted:
    """An entity as it is to be kept."""

    category: str
    name: str
    body_json: str
    status: str | None
    """None: as it was."""


def as_kept(reader: Reader, wanted: Wanted, as_given: tuple[str, str]) -> Wanted:
    """The entity under the names that the store has already, where those may be meant."""
    for category in spellings(as_given[0]):
        for name in spellings(as_given[1]):
            if reader.has(ENTITIES, category, name):
                return replace(wanted, category=category, name=name)
    return wanted


def remember(writer: Writer, cap: Cap, stamp: Stamp, wanted: Wanted) -> tuple[str, bool]:
    """Keep the entity; its id, and whether it is new.

    What cannot be believed of the one before is written anew.

    Raises:
        LimitError: The tenant's cap.
    """
    stored = _before(writer, wanted.category, wanted.name)
    entity = records_pb2.Entity(category=wanted.category, name=wanted.name)
    now = stamp.now()
    if stored is None:
        entity.id = stamp.new_id()
        entity.created_at.CopyFrom(now)
    else:
        entity.CopyFrom(stored.entity)
    entity.body_json = wanted.body_json
    entity.updated_at.CopyFrom(now)
    if wanted.status is not None:
        entity.status = wanted.status
    _put(writer, cap, entity, stored)
    return entity.id, stored is None


def put_entity(writer: Writer, cap: Cap, entity: records_pb2.Entity) -> None:
    """Keep the entity as it is, as the newest.

    Raises:
        LimitError: The tenant's cap.
    """
    _put(writer, cap, entity, _before(writer, entity.category, entity.name))


def _before(writer: Writer, category: str, name: str) -> store_pb2.StoredEntity | None:
    """What stands under these names; None where it cannot be believed, too."""
    try:
        return find_entity(writer, category, name)
    except TamperedError:
        return None


def _put(
    writer: Writer, cap: Cap, entity: records_pb2.Entity, before: store_pb2.StoredEntity | None
) -> None:
    order = next_order(writer)
    stored = store_pb2.StoredEntity(entity=entity, order=order)
    writer.put(ENTITIES, entity.category, entity.name, value=stored)
    if before is not None:
        _leave_place(writer, before)
    place = store_pb2.StoredEntityPlace(category=entity.category, name=entity.name)
    for scope in (scope_of(None), scope_of(entity.category)):
        writer.put(ENTITY_ORDER, scope, counted_down(order), value=place)
    grown = size_of_entity(entity) - (size_of_entity(before.entity) if before else 0)
    count = 0 if before else 1
    add_to_totals(writer, cap, grown_bytes=grown, kind=records_pb2.RECORD_KIND_ENTITY, count=count)
    if count:
        add_to_category(writer, entity.category, count)


def take_entity(writer: Writer, stored: store_pb2.StoredEntity) -> None:
    """Take the entity out of what is kept."""
    entity = stored.entity
    writer.delete(ENTITIES, entity.category, entity.name)
    _leave_place(writer, stored)
    add_to_totals(
        writer,
        Cap(None),
        grown_bytes=-size_of_entity(entity),
        kind=records_pb2.RECORD_KIND_ENTITY,
        count=-1,
    )
    add_to_category(writer, entity.category, -1)


def _leave_place(writer: Writer, stored: store_pb2.StoredEntity) -> None:
    for scope in (scope_of(None), scope_of(stored.entity.category)):
        writer.delete(ENTITY_ORDER, scope, counted_down(stored.order))


def find_entity(reader: Reader, category: str, name: str) -> store_pb2.StoredEntity | None:
    """The entity of that exact category and name, or None.

    Raises:
        TamperedError: It cannot be believed.
    """
    return reader.get(ENTITIES, category, name)


def known_entity(reader: Reader, categories: list[str], names: list[str]) -> store_pb2.StoredEntity:
    """The entity of one of these names, likeliest first.

    Raises:
        NotFoundError: There is none.
        TamperedError: It cannot be believed.
    """
    for category in categories:
        for name in names:
            stored = find_entity(reader, category, name)
            if stored is not None:
                return stored
    raise NotFoundError(
        f"entity {categories[0]:.100}/{names[0]:.100} not found", reason="RECORD_UNKNOWN"
    )


def list_entities(
    reader: Reader, request: records_pb2.ListEntitiesRequest
) -> records_pb2.ListEntitiesResponse:
    """A page of entities, the most recently written first."""
    category = _known_category(reader, request.category) if request.HasField("category") else None
    limit = page_limit(request.limit)
    response = records_pb2.ListEntitiesResponse(doubts=reader.doubts())
    response.total = _total(reader, category)
    after = counted_down(request.cursor) if request.HasField("cursor") else None
    order = size = 0
    for place in entities_in_order(reader, category, after):
        if isinstance(place, TamperedError):
            response.tampered += 1
            continue
        body, length = cut(place.entity.body_json, request.body_limit_characters)
        size += len(body.encode())
        if response.entities and (len(response.entities) == limit or size > LIST_PAGE_BYTES):
            response.next_cursor = order
            break
        order = place.order
        listed = response.entities.add(entity=place.entity, body_characters=length)
        listed.entity.body_json = body
    return response


def entities_in_order(
    reader: Reader, category: str | None, after: int | None
) -> Iterator[store_pb2.StoredEntity | TamperedError]:
    """Entities, newest first, from behind a place (an order, counted down)."""
    scope = scope_of(category)
    behind = None if after is None else (scope, after)
    for key, place in reader.survey(ENTITY_ORDER, scope, after=behind):
        if isinstance(place, TamperedError):
            yield place
            continue
        try:
            stored = find_entity(reader, place.category, place.name)
        except TamperedError as error:
            yield error
            continue
        # A place that somebody put back is none of its entity's.
        if stored is not None and key[1:] == (counted_down(stored.order),):
            yield stored


def _known_category(reader: Reader, asked: str) -> str:
    """The category that is meant, of those that there are."""
    known = (one for one in spellings(asked) if reader.has(CATEGORY_TOTALS, one))
    return next(known, asked)


def _total(reader: Reader, category: str | None) -> int:
    """How many there are; counted where the account cannot be believed."""
    try:
        if category is None:
            return read_totals(reader).entities
        stored = reader.get(CATEGORY_TOTALS, category)
        return stored.entities if stored else 0
    except TamperedError:
        return sum(1 for _ in entities_in_order(reader, category, None))


def page_limit(asked: int) -> int:
    """How many records a page has."""
    return min(asked or LIST_DEFAULT_RECORDS, LIST_LIMIT_RECORDS)


def cut(text: str, limit_characters: int) -> tuple[str, int]:
    """The text, or its beginning; and how long it is as a whole, in characters."""
    return (text[:limit_characters] if limit_characters else text), len(text)
