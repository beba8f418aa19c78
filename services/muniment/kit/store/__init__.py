"""The system of record: typed LMDB tables, one writer, and the feed of what changed.

A store is one LMDB environment, opened by one process alone. Every row carries a keyed check, or
in a sealed store is encrypted.
"""

from muniment.kit.store.feed import FeedPage, read_feed
from muniment.kit.store.idempotency import Once
from muniment.kit.store.keys import pack, unpack
from muniment.kit.store.protection import Protection
from muniment.kit.store.store import Follower, Store, StoreOptions
from muniment.kit.store.tables import Schema, Table
from muniment.kit.store.transaction import Reader, Writer

__all__ = [
    "FeedPage",
    "Follower",
    "Once",
    "Protection",
    "Reader",
    "Schema",
    "Store",
    "StoreOptions",
    "Table",
    "Writer",
    "pack",
    "read_feed",
    "unpack",
]
