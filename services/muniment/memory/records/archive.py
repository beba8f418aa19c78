"""The archive: entities that were forgotten, whole, until somebody purges them."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.kit.errors import NotFoundError, PreconditionError, TamperedError
from muniment.kit.store import Reader, Writer, pack
from muniment.kit.store.tables import CHANGES
from muniment.memory.records.entities import (
    find_entity,
    known_entity,
    page_limit,
    put_entity,
    take_entity,
)
from muniment.memory.records.limits import LIST_PAGE_BYTES
from muniment.memory.records.order import counted_down, next_order
from muniment.memory.records.schema import ARCHIVE, ENTITIES, RECORD_IDS
from muniment.memory.records.totals import (
    Cap,
    add_to_totals,
    read_totals,
    size_of_archived,
)
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2, store_pb2

__all__ = [
    "archived_entity",
    "drop_archived",
    "forget",
    "list_archive",
    "purge_archived",
    "put_archived",
    "restore_archived",
    "values_in_feed",
]


def forget(
    writer: Writer, stamp: Stamp, categories: list[str], names: list[str], reason: str | None
) -> records_pb2.ForgetResponse:
    """Move the entity to the archive.

    Raises:
        NotFoundError: There is none of these names.
        TamperedError: It cannot be believed.
    """
    stored = known_entity(writer, categories, names)
    archived = records_pb2.ArchivedEntity(
        id=stamp.new_id(), entity=stored.entity, archived_at=stamp.now(), reason=reason
    )
    take_entity(writer, stored)
    # What is kept already is no ground to refuse that it is put away.
    put_archived(writer, Cap(None), archived)
    return records_pb2.ForgetResponse(archive_id=archived.id)


def put_archived(writer: Writer, cap: Cap, archived: records_pb2.ArchivedEntity) -> None:
    """Keep the archived entity as it is.

    Raises:
        LimitError: The tenant's cap.
    """
    order = next_order(writer)
    writer.put(ARCHIVE, counted_down(order), value=archived)
    number = store_pb2.StoredRecordNumber(number=order)
    writer.put(RECORD_IDS, ARCHIVE.name, archived.id, value=number)
    _count(writer, cap, size_of_archived(archived), 1)


def restore_archived(writer: Writer, cap: Cap, archive_id: str) -> records_pb2.Entity:
    """Bring the entity back, with its id and times.

    Raises:
        NotFoundError: The archive has no such entity.
        PreconditionError: Another entity has its name by now.
        TamperedError: It cannot be believed.
    """
    order, archived = _known(writer, archive_id)
    entity = archived.entity
    if find_entity(writer, entity.category, entity.name) is not None:
        raise PreconditionError(
            f"there is an entity {entity.category:.100}/{entity.name:.100} again",
            reason="RECORD_NAME_TAKEN",
            fix="forget that one first, or leave this one in the archive",
        )
    _take_out(writer, order, archived)
    put_entity(writer, cap, entity)
    return entity


def drop_archived(writer: Writer, archive_id: str) -> None:
    """Take the entity out of the archive; its values stay in the feed.

    Raises:
        NotFoundError: The archive has no such entity.
        TamperedError: It cannot be believed.
    """
    _take_out(writer, *_known(writer, archive_id))


def _take_out(writer: Writer, order: int, archived: records_pb2.ArchivedEntity) -> None:
    writer.delete(ARCHIVE, counted_down(order))
    _leave(writer, archived)


def purge_archived(
    writer: Writer, archive_id: str, changes: Iterable[int]
) -> records_pb2.ArchivedEntity:
    """Delete the archived entity for good, and its values in those changes of the feed.

    Raises:
        NotFoundError: The archive has no such entity.
        TamperedError: It cannot be believed.
    """
    order, archived = _known(writer, archive_id)
    writer.purge(ARCHIVE, counted_down(order))
    _leave(writer, archived)
    entity = archived.entity
    is_again = find_entity(writer, entity.category, entity.name) is not None
    for position in changes:
        writer.purge_change(position, with_key=not is_again)
    return archived


def values_in_feed(reader: Reader, archive_id: str, after: int) -> tuple[list[int], int]:
    """Positions behind `after` of the changes that tell of it, and how far was looked.

    Raises:
        NotFoundError: The archive has no such entity.
        TamperedError: It, or a change, cannot be believed.
    """
    order, archived = _known(reader, archive_id)
    entity = archived.entity
    entity_key = pack(entity.category, entity.name)
    archive_key = pack(counted_down(order))
    state = reader.state()
    found: list[int] = []
    created: list[int] = []
    archived_at: dict[bytes, int] = {}
    for position in range(max(after, state.floor) + 1, state.position + 1):
        change = reader.get(CHANGES, position)
        if change is None:
            continue
        if change.table == ARCHIVE.name:
            # Both ends of each stay in the archive, else the feed speaks of a row that is not.
            begun = archived_at.pop(change.key, None)
            if change.key == archive_key:
                found.append(position)
            elif not change.HasField("before_sha256"):
                archived_at[change.key] = position
            elif _archived_before(change) == entity.id:
                found += [position] if begun is None else [begun, position]
        elif change.table == ENTITIES.name and change.key == entity_key:
            if not change.HasField("before_sha256"):
                # Of which entity it is tells the next change of that name.
                created = [position]
                continue
            # Another entity that had the name, or has it now, is none of this one's.
            before = store_pb2.StoredEntity.FromString(change.before)
            if before.entity.id == entity.id:
                found += [*created, position]
            created = []
    return found, state.position


def _archived_before(change: store_pb2.StoredChange) -> str | None:
    """The id of the entity that was in the archive before, and was restored."""
    if not change.HasField("before"):
        return None
    return records_pb2.ArchivedEntity.FromString(change.before).entity.id


def archived_entity(reader: Reader, archive_id: str) -> records_pb2.ArchivedEntity | None:
    """The archived entity of that id, or None.

    Raises:
        TamperedError: It cannot be believed.
    """
    number = reader.get(RECORD_IDS, ARCHIVE.name, archive_id)
    found = reader.get(ARCHIVE, counted_down(number.number)) if number else None
    return found if found is not None and found.id == archive_id else None


def list_archive(
    reader: Reader, request: records_pb2.ListArchiveRequest
) -> records_pb2.ListArchiveResponse:
    """A page of the archive, newest first."""
    response = records_pb2.ListArchiveResponse(total=read_totals(reader).archived)
    after = (counted_down(request.cursor),) if request.HasField("cursor") else None
    last = size = 0
    for key, archived in reader.survey(ARCHIVE, after=after):
        if isinstance(archived, TamperedError):
            response.tampered += 1
        elif not request.HasField("category") or archived.entity.category == request.category:
            size += archived.ByteSize()
            full = len(response.archived) == page_limit(request.limit) or size > LIST_PAGE_BYTES
            if full and response.archived:
                response.next_cursor = last
                break
            last = counted_down(int(key[0]))
            response.archived.append(archived)
    return response


def _known(reader: Reader, archive_id: str) -> tuple[int, records_pb2.ArchivedEntity]:
    number = reader.get(RECORD_IDS, ARCHIVE.name, archive_id)
    archived = archived_entity(reader, archive_id)
    if number is None or archived is None:
        raise NotFoundError(
            f"the archive has no {archive_id:.100}",
            reason="RECORD_UNKNOWN",
            field="archive_id",
            fix="`muniment records archive` lists what there is",
        )
    return number.number, archived


def _leave(writer: Writer, archived: records_pb2.ArchivedEntity) -> None:
    writer.delete(RECORD_IDS, ARCHIVE.name, archived.id)
    _count(writer, Cap(None), -size_of_archived(archived), -1)


def _count(writer: Writer, cap: Cap, grown_bytes: int, count: int) -> None:
    kind = records_pb2.RECORD_KIND_ARCHIVE
    add_to_totals(writer, cap, grown_bytes=grown_bytes, kind=kind, count=count)
