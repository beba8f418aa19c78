"""Opens a store, after bringing one of an earlier version up to the present one.

What an earlier version wrote is only read: a new store is built beside it and takes its place, and
the old folder stays as the way back. Where the present version only has more tables, the new store
is a copy: it goes on with the feed and the incarnation of the old one, and what was derived from
that fits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import lmdb
import structlog

from muniment.kit.errors import LimitError
from muniment.kit.files import copy_file, make_file
from muniment.kit.store.folders import NEW_LIFE, begin_building, free_name, settle, swap_in
from muniment.kit.store.jobs import ThreadedLoop
from muniment.kit.store.protection import Protection
from muniment.kit.store.schemas import peek_schema, require_key, write_schema
from muniment.kit.store.store import Store, StoreOptions
from muniment.kit.store.tables import META, Schema
from muniment.v1 import store_pb2

__all__ = ["Migration", "OldTables", "open_store"]

_TABLES_LIMIT = 126
_DATA_FILE = "data.mdb"
_SPARE_BYTES = 1024 * 1024

_log = structlog.get_logger()


class OldTables:
    """The tables of an earlier version as they lie on the disk: keys and values are bytes."""

    def __init__(self, environment: lmdb.Environment) -> None:
        """Read from an environment that nobody writes."""
        self._environment = environment

    def rows(self, table: str) -> Iterator[tuple[bytes, bytes]]:
        """The rows of the table in key order; none where there is no such table."""
        try:
            database = self._environment.open_db(table.encode(), create=False)
        except lmdb.NotFoundError:
            return
        with self._environment.begin() as transaction:
            for key, value in transaction.cursor(db=database):
                yield bytes(key), bytes(value)


Migration = Callable[[OldTables, Store], None]
"""Fills a new, empty store from the tables of an earlier version."""


def open_store(
    folder: Path,
    schema: Schema,
    migrations: Mapping[int, Migration],
    protection: Protection,
    options: StoreOptions,
) -> Store:
    """The store in the folder, brought up to the schema where it is of an earlier version.

    `migrations` are by the version that they start from.

    Raises:
        PreconditionError: It is of a version that cannot be read, or has another key.
        MunimentError: It could not be brought up; it is as it was.
    """
    settle(folder)
    stored = peek_schema(folder)
    if stored is not None and stored.version in schema.grown_from:
        require_key(stored, protection, folder)
        _grow(folder, stored, schema, options)
    elif stored is not None and (migration := migrations.get(stored.version)) is not None:
        _migrate(folder, stored.version, migration, schema, protection, options)
    return Store(folder, schema, protection, options)


def _grow(
    folder: Path, stored: store_pb2.StoredSchema, schema: Schema, options: StoreOptions
) -> None:
    """Let a copy that says it is of the present version take the store's place."""
    kept = free_name(folder, f"v{stored.version}", options.clock)
    _log.info("store is brought up", store=str(folder), before=stored.version, now=schema.version)
    building = begin_building(folder)
    data = building / _DATA_FILE
    try:
        copy_file(folder / _DATA_FILE, data, lambda done: None)
        if (folder / NEW_LIFE).exists():
            with make_file(building / NEW_LIFE):
                pass
        stored.version = schema.version
        map_bytes = data.stat().st_size + _SPARE_BYTES
        with closing(
            lmdb.open(str(building), max_dbs=_TABLES_LIMIT, map_size=map_bytes, mode=0o600)
        ) as environment:
            meta = environment.open_db(META.name.encode(), create=False)
            with environment.begin(write=True) as transaction:
                write_schema(transaction, meta, stored)
    except (lmdb.Error, OSError) as error:
        settle(folder)
        raise LimitError(
            f"the store could not be copied: {error}",
            reason="STORE_COPY_FAILED",
            fix="make room on the disk; the store is as it was",
        ) from error
    swap_in(folder, aside=kept)
    _log.info("store is brought up to date", store=str(folder), kept=str(kept))


def _migrate(
    folder: Path,
    version: int,
    migration: Migration,
    schema: Schema,
    protection: Protection,
    options: StoreOptions,
) -> None:
    kept = free_name(folder, f"v{version}", options.clock)
    _log.info("store is brought up", store=str(folder), before=version, now=schema.version)
    building = begin_building(folder)
    # A loop runs once.
    options = replace(options, loop=ThreadedLoop())
    with (
        closing(
            lmdb.open(str(folder), max_dbs=_TABLES_LIMIT, readonly=True, lock=False)
        ) as environment,
        closing(Store(building, schema, protection, options)) as store,
    ):
        migration(OldTables(environment), store)
    swap_in(folder, aside=kept)
    _log.info("store is brought up to date", store=str(folder), kept=str(kept))
