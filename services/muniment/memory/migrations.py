"""From earlier versions of the memory's tables to the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.message import Message

from muniment.kit.store import Store, Table, Writer, unpack
from muniment.kit.store.migration import Migration, OldTables
from muniment.kit.store.tables import REPLIES, REPLY_TIMES
from muniment.memory.schema import (
    CONTENTS,
    EPISODE_IDS,
    EPISODES,
    PIN_SCOPES,
    PINS,
    PROJECTS,
    SESSIONS,
    SUPERSESSIONS,
)
from muniment.v1 import store_pb2

__all__ = ["MIGRATIONS"]

_PORTION_BYTES = 4 * 1024 * 1024
"""What is written in one transaction."""

_WRITTEN_BY = "migration from schema version 1"

_UNCHANGED: tuple[Table[Any], ...] = (
    EPISODES,
    CONTENTS,
    EPISODE_IDS,
    SESSIONS,
    SUPERSESSIONS,
    PINS,
    PROJECTS,
)
"""Tables whose keys and messages are those of version 1."""

_Write = Callable[[Writer], None]


def _from_version_1(old: OldTables, new: Store) -> None:
    """Rows get their checks and their places in a new feed; that of version 1 had no chain."""
    portion: list[_Write] = []
    portion_bytes = 0
    for size, write in _writes(old):
        portion.append(write)
        portion_bytes += size
        if portion_bytes >= _PORTION_BYTES:
            _run(new, portion)
            portion, portion_bytes = [], 0
    _run(new, portion)


def _run(new: Store, portion: list[_Write]) -> None:
    def change(writer: Writer) -> None:
        for write in portion:
            write(writer)

    new.write(change, written_by=_WRITTEN_BY).result()


def _writes(old: OldTables) -> Iterator[tuple[int, _Write]]:
    """What writes each row, and the row's size."""
    for table in _UNCHANGED:
        for key, value in old.rows(table.name):
            yield len(value), _put(table, key, table.message.FromString(value))
    for key, value in old.rows(PIN_SCOPES.name):
        scope = store_pb2.StoredPinRef.FromString(value)
        scope.session_id = str(unpack(key)[1])
        yield len(value), _put(PIN_SCOPES, key, scope)
    for key, value in old.rows(REPLIES.name):
        reply = store_pb2.StoredReply.FromString(value)
        yield len(value), _put(REPLIES, key, reply)
        yield 0, _put_time(key, reply)
    yield 0, _note_newest


def _note_newest(writer: Writer) -> None:
    # The account knows from then on that there was an episode, whatever becomes of its row.
    writer.newest_number(EPISODES)


def _put(table: Table[Any], key: bytes, value: Message) -> _Write:
    return lambda writer: writer.put(table, *unpack(key), value=value)


def _put_time(key: bytes, reply: store_pb2.StoredReply) -> _Write:
    at = reply.created_at.ToNanoseconds()
    return lambda writer: writer.put(
        REPLY_TIMES, at, *unpack(key), value=store_pb2.StoredReplyTime()
    )


MIGRATIONS: Mapping[int, Migration] = {1: _from_version_1}
"""By the version that they start from."""
