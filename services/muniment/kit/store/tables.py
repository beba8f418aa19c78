"""What a store is made of: tables of protobuf messages, and the schema that lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from muniment.v1 import store_pb2

__all__ = ["CHANGES", "META", "REPLIES", "REPLY_TIMES", "STATE_KEY", "Schema", "Table"]

M = TypeVar("M", bound=Message)

STATE_KEY = "state"


@dataclass(frozen=True)
class Table(Generic[M]):
    """A named table: keys are tuples, values messages of one type."""

    name: str
    message: type[M]
    in_feed: bool = False
    """Whether the change feed records what is written here."""
    mutable: bool = False
    """Whether rows are rewritten or taken away. Such tables are small: the store remembers which
    row is the newest, so that an older one that was put back is known at once. Whoever writes to
    one outside the feed writes to the feed in the same change, before. Not set where an older row
    says nothing that is not true any more."""


@dataclass(frozen=True)
class Schema:
    """The tables of a store and the version of their shape."""

    version: int
    tables: tuple[Table[Any], ...]
    grown_from: frozenset[int] = frozenset()
    """Earlier versions that lacked some of the tables and differed in nothing else."""

    def all_tables(self) -> tuple[Table[Any], ...]:
        """The tables with those that every store has."""
        return (META, CHANGES, REPLIES, REPLY_TIMES, *self.tables)


META: Table[store_pb2.StoredState] = Table("meta", store_pb2.StoredState, mutable=True)
CHANGES: Table[store_pb2.StoredChange] = Table("changes", store_pb2.StoredChange)
REPLIES: Table[store_pb2.StoredReply] = Table("replies", store_pb2.StoredReply)
REPLY_TIMES: Table[store_pb2.StoredReplyTime] = Table("reply_times", store_pb2.StoredReplyTime)
