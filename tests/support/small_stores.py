"""A store of a few small tables, for tests of what is done to stores as a whole."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muniment.kit.clock import Clock
from muniment.kit.progress import Report
from muniment.kit.store import Protection, Schema, Store, StoreOptions, Table, Writer
from muniment.kit.store.rewrite import rewrite_store
from muniment.v1 import store_pb2
from tests.support.seams import FakeClock, SeededRandomness

__all__ = [
    "NAMES",
    "NOTES",
    "SEALED",
    "SMALL_SCHEMA",
    "TEXTS",
    "a_full_disk",
    "a_protection",
    "contents",
    "open_small",
    "quiet",
    "rewrite",
    "write_some",
]

NOTES: Table[store_pb2.StoredContent] = Table(
    "notes", store_pb2.StoredContent, in_feed=True, mutable=True
)
TEXTS: Table[store_pb2.StoredContent] = Table("texts", store_pb2.StoredContent, in_feed=True)
NAMES: Table[store_pb2.StoredEpisodeRef] = Table("names", store_pb2.StoredEpisodeRef)

SMALL_SCHEMA = Schema(version=3, tables=(NOTES, TEXTS, NAMES))

_MAP_LIMIT_BYTES = 64 * 1024**2
_seeds = itertools.count()


def a_protection(seed: int = 1, *, sealed: bool = False) -> Protection:
    """The key of that seed, with randomness of its own."""
    return Protection(bytes([seed]) * 32, sealed, SeededRandomness(next(_seeds)))


SEALED = a_protection(2, sealed=True)


def open_small(
    folder: Path, protection: Protection | None = None, *, clock: Clock | None = None, **more: Any
) -> Store:
    """The small store in the folder."""
    options = StoreOptions(
        map_limit_bytes=_MAP_LIMIT_BYTES, clock=clock or FakeClock(step_ns=1000), **more
    )
    return Store(folder, SMALL_SCHEMA, protection or a_protection(), options)


def write_some(store: Store, first: int = 1, last: int = 20) -> None:
    """Rows in all tables, some of them rewritten and some taken away, with keys of all lengths."""

    def change(writer: Writer) -> None:
        for number in range(first, last + 1):
            text = store_pb2.StoredContent(text=f"text {number}")
            writer.put(TEXTS, number, value=text)
            writer.put(NOTES, "note", f"{number % 7}", value=text)
            name = f"{number}-" + "n" * (40 * number % 900)
            writer.put(NAMES, "name", name, number, value=store_pb2.StoredEpisodeRef(seq=number))
        writer.delete(NOTES, "note", "3")

    store.write(change, written_by="a test").result()


def contents(store: Store) -> Mapping[str, Any]:
    """All that a store has and that does not depend on its key."""
    with store.read() as reader:
        tables = (*SMALL_SCHEMA.tables, *SMALL_SCHEMA.all_tables()[1:])
        rows = {
            table.name: sorted(
                (repr(row.key), row.position, row.payload.value, row.payload.written_by)
                for row in (reader.open_row(table, *one) for one in reader.raw_rows(table))
            )
            for table in tables
        }
        state = reader.state()
        state.sums.clear()
        return {**rows, "state": state.SerializeToString(deterministic=True)}


def quiet(step: str, done: int, total: int) -> None:
    """Take a report and do nothing."""


def rewrite(folder: Path, old: Protection, new: Protection, report: Report = quiet) -> None:
    """Rewrite the store in the folder."""
    rewrite_store(folder, old, new, report)


@contextmanager
def a_full_disk(after_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond so much."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
