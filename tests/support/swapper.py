"""Changes a store's folder in a process of its own, which a test kills at a fault point.

    python -m tests.support.swapper HOME WHAT

WHAT is `seal`, `rotate`, `finish`, `restore` (from HOME/copy) or `open`, which brings a store of
an earlier version up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb

from muniment.kit.clock import SystemClock
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.key_change import change_key, finish_change, stores_with_data
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Store, StoreOptions, Writer
from muniment.kit.store.folders import settle
from muniment.kit.store.keys import pack
from muniment.kit.store.migration import Migration, OldTables, open_store
from muniment.kit.store.restore import examine_copy, restore_copy
from muniment.kit.store.schemas import peek_schema
from muniment.v1 import store_pb2
from tests.support.small_stores import SMALL_SCHEMA, TEXTS, quiet

__all__ = ["OLD_VERSION", "folders_of", "make_old_store", "open_of", "shelf_of"]

OLD_VERSION = 1

_RANDOM = SystemRandomness()
_SERVICES = ("small", "other")


def shelf_of(home: Home) -> KeyShelf:
    """The keys of the home, in a folder beside it."""
    return KeyShelf(home, "file", str(home.path.with_name("keys")))


def folders_of(home: Home) -> Sequence[Path]:
    """The stores of the home."""
    return [home.data(service) / "store" for service in _SERVICES]


def open_of(home: Home, folder: Path) -> Store:
    """One of the home's stores, opened as its service would."""
    settle(folder)
    key = shelf_of(home).load_or_make(_RANDOM, peek_schema(folder))
    options = StoreOptions(map_limit_bytes=64 * 1024**2)
    return open_store(folder, SMALL_SCHEMA, _MIGRATIONS, key.protection(_RANDOM), options)


def make_old_store(folder: Path, texts: Sequence[str]) -> None:
    """A store of an earlier version, whose rows are bare messages."""
    folder.mkdir(parents=True)
    with closing(lmdb.open(str(folder), max_dbs=9)) as environment:
        meta, table = (environment.open_db(name) for name in (b"meta", TEXTS.name.encode()))
        with environment.begin(write=True) as transaction:
            schema = store_pb2.StoredSchema(version=OLD_VERSION)
            transaction.put(pack("schema"), schema.SerializeToString(), db=meta)
            for number, text in enumerate(texts, 1):
                value = store_pb2.StoredContent(text=text).SerializeToString()
                transaction.put(pack(number), value, db=table)


def _bring_up(old: OldTables, new: Store) -> None:
    rows = [store_pb2.StoredContent.FromString(value) for _, value in old.rows(TEXTS.name)]

    def change(writer: Writer) -> None:
        for number, row in enumerate(rows, 1):
            writer.put(TEXTS, number, value=row)

    new.write(change).result()


_MIGRATIONS: Mapping[int, Migration] = {OLD_VERSION: _bring_up}


def _change(home: Home, what: str) -> None:
    shelf, folders = shelf_of(home), stores_with_data(folders_of(home))
    key: Any = shelf.load_next()
    if key is not None:
        finish_change(shelf, key, folders, _RANDOM, quiet)
    elif what != "finish":
        present = shelf.load()
        sealed = what == "seal" or (present is not None and present.sealed)
        change_key(shelf, HomeKey.make(_RANDOM, sealed=sealed), folders, _RANDOM, quiet)


def _main(home: Home, what: str) -> None:
    first = folders_of(home)[0]
    if what == "restore":
        copy = examine_copy(home.path / "copy", "small", quiet)
        restore_copy(copy, first, SystemClock(), quiet)
    elif what == "open":
        store = open_of(home, first)
        store.close()
    else:
        _change(home, what)


if __name__ == "__main__":
    _main(Home(Path(sys.argv[1])), sys.argv[2])
