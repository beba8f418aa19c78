"""A small schema for tests of the store."""

from __future__ import annotations

from pathlib import Path

from muniment.kit.store import REPLIES, Reader, Schema, Store, Table
from muniment.v1 import store_pb2

__all__ = ["NUMBERED", "QUIET", "ROWS", "SCHEMA", "a_store", "content", "texts"]

ROWS: Table[store_pb2.StoredContent] = Table("rows", store_pb2.StoredContent, in_feed=True)
QUIET: Table[store_pb2.StoredContent] = Table("quiet", store_pb2.StoredContent)
NUMBERED: Table[store_pb2.StoredContent] = Table("numbered", store_pb2.StoredContent, in_feed=True)
SCHEMA = Schema(version=3, tables=(ROWS, QUIET, NUMBERED, REPLIES))


def a_store(folder: Path, schema: Schema = SCHEMA, *, map_bytes: int = 16 * 1024**2) -> Store:
    """The store in that folder."""
    return Store(folder, schema, map_bytes=map_bytes)


def content(text: str) -> store_pb2.StoredContent:
    """A row's value."""
    return store_pb2.StoredContent(text=text)


def texts(reader: Reader, table: Table[store_pb2.StoredContent]) -> dict[object, str]:
    """All rows of the table, in key order."""
    return {key: row.text for key, row in reader.scan(table)}
