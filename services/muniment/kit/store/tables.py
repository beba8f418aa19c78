"""What a store is made of: tables of protobuf messages, and the schema that lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from muniment.v1 import store_pb2

__all__ = ["CHANGES", "META", "REPLIES", "Schema", "Table"]

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Table(Generic[M]):
    """A named table: keys are tuples, values messages of one type."""

    name: str
    message: type[M]
    in_feed: bool = False
    """Whether the change feed records what is written here."""


@dataclass(frozen=True)
class Schema:
    """The tables of a store and the version of their shape."""

    version: int
    tables: tuple[Table[Any], ...]


META: Table[store_pb2.StoredSchema] = Table("meta", store_pb2.StoredSchema)
CHANGES: Table[store_pb2.StoredChange] = Table("changes", store_pb2.StoredChange)
REPLIES: Table[store_pb2.StoredReply] = Table("replies", store_pb2.StoredReply)
