"""Copies what a store holds into a fresh file, and goes on with that.

LMDB keeps the pages of what was deleted, and what stood on them. A file into which rows are
written one by one has never seen it. The copy is made in portions while others read and write;
which rows were written meanwhile is noted, and those are copied again when everything stands
still, just before the new file takes the place of the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import lmdb

from muniment.kit import faults
from muniment.kit.errors import LimitError
from muniment.kit.progress import Report
from muniment.kit.store.disk import Disk
from muniment.kit.store.folders import begin_building, settle, swap_in
from muniment.kit.store.journal import Journal, Place
from muniment.kit.store.tables import Table

if TYPE_CHECKING:
    from muniment.kit.store.store import Store

__all__ = ["compact_store"]

_PORTION_BYTES = 8 * 1024 * 1024
"""What is read in one moment and written in one transaction."""

_SPARE_BYTES = 64 * 1024 * 1024
_STEP = "copying the store"


def compact_store(
    store: Store, journal: Journal, disk: Disk, map_bytes: int, report: Report
) -> None:
    """Let a fresh copy take the place of the store's files. Not called on the store's writer.

    After a crash the old files are there, or the new ones.

    Raises:
        LimitError: The copy cannot be written; the old files stay.
    """
    store.between(journal.begin).result()
    try:
        with closing(_open(store, disk, map_bytes)) as environment:
            copy = _Copy(store, disk, environment)
            copy.write_all(report)
            store.between(lambda: copy.take_place(journal.end())).result()
    except (lmdb.Error, OSError) as error:
        raise LimitError(
            f"the store could not be copied: {error}",
            reason="STORE_COPY_FAILED",
            fix="make room on the disk; the store is as it was",
        ) from error
    finally:
        store.between(journal.end).result()
        settle(store.path)


def _open(store: Store, disk: Disk, map_bytes: int) -> lmdb.Environment:
    return disk.open(
        folder=begin_building(store.path),
        map_bytes=map_bytes + _SPARE_BYTES,
        tables=len(store.schema.all_tables()) + 4,
    )


class _Copy:
    """The fresh files while they are made, beside the store's."""

    def __init__(self, store: Store, disk: Disk, environment: lmdb.Environment) -> None:
        self._store = store
        self._disk = disk
        self._tables = store.schema.all_tables()
        self._environment = environment
        self._databases = _databases(environment, self._tables)

    def write_all(self, report: Report) -> None:
        """Copy every row that was there at the beginning; what is written since is for later.

        Nor is it followed where tables grow, or a busy writer would never let it come to an end.
        """
        with self._store.read() as reader:
            total = sum(map(reader.count, self._tables))
            ends = [(table, reader.last_address(table)) for table in self._tables]
        done = 0
        for table, end in ends:
            portion = self._read(table, None, end)
            while portion:
                self._append(table, portion)
                done += len(portion)
                report(_STEP, min(done, total), total)
                portion = self._read(table, portion[-1][0], end)

    def _read(
        self, table: Table[Any], after: bytes | None, end: bytes | None
    ) -> list[tuple[bytes, bytes]]:
        portion, size = [], 0
        with self._store.read() as reader:
            for address, raw in reader.raw_rows(table, after):
                if end is None or address > end:
                    break
                portion.append((address, raw))
                size += len(address) + len(raw)
                if size >= _PORTION_BYTES:
                    break
        return portion

    def _append(self, table: Table[Any], portion: list[tuple[bytes, bytes]]) -> None:
        database = self._databases[table.name]
        with self._environment.begin(write=True, db=database) as transaction:
            # The addresses ascend, so pages are filled to the brim.
            transaction.cursor().putmulti(portion, append=True)
            self._disk.committing(self._environment)
        self._disk.committed(self._environment)

    def take_place(self, written: set[Place]) -> None:
        """Copy what was written meanwhile, and go on with the copy. On the store's writer."""

        def swap(source: lmdb.Environment) -> None:
            databases = _databases(source, self._tables)
            with source.begin() as old, self._environment.begin(write=True) as new:
                for table, address in written:
                    row = old.get(address, db=databases[table])
                    if row is None:
                        new.delete(address, db=self._databases[table])
                    else:
                        new.put(address, row, db=self._databases[table])
                self._disk.committing(self._environment)
            self._disk.committed(self._environment)
            self._environment.sync(True)
            self._environment.close()
            faults.reach("compaction.copied")
            swap_in(self._store.path)

        self._store.replace_files(swap)


def _databases(environment: lmdb.Environment, tables: tuple[Table[Any], ...]) -> Mapping[str, Any]:
    return {table.name: environment.open_db(table.name.encode()) for table in tables}
