"""The system of record: typed LMDB tables, one writer, and the feed of what changed.

A store is one LMDB environment, opened by one process alone.
"""

from muniment.kit.store.idempotency import once
from muniment.kit.store.keys import pack, unpack
from muniment.kit.store.store import Follower, Reader, Store, Writer
from muniment.kit.store.tables import REPLIES, Schema, Table

__all__ = [
    "REPLIES",
    "Follower",
    "Reader",
    "Schema",
    "Store",
    "Table",
    "Writer",
    "once",
    "pack",
    "unpack",
]
