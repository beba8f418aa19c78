"""The lexical index: SQLite FTS5 over analysed terms, in partitions.

The index is derived. It remembers how far it has come with its store, in the transaction of the
rows; what it lacks it takes from the store, and a file that is damaged, or was made by another
analysis, is made anew.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from muniment.kit.errors import UnavailableError
from muniment.kit.files import private_folder
from muniment.kit.index.analysis import ANALYSIS_VERSION
from muniment.kit.index.documents import Document, Taking
from muniment.kit.index.gathering import Gathered, Gathering, gather
from muniment.kit.index.searching import (
    Match,
    Within,
    search,
    whole_value,
)
from muniment.kit.index.vocabulary import list_sizes, list_sizes_from, partitions_of

__all__ = [
    "Document",
    "Gathered",
    "Gathering",
    "LexicalIndex",
    "Match",
    "Progress",
    "Within",
    "delete_index",
    "open_index",
    "scope",
    "whole_value",
]

_VERSION = 100 * ANALYSIS_VERSION + 4
"""Raised with the tables too."""

_TABLES = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    partition INTEGER NOT NULL,
    place INTEGER NOT NULL,
    digest TEXT NOT NULL,
    length INTEGER NOT NULL,
    scopes TEXT NOT NULL,
    counts TEXT NOT NULL,
    series INTEGER NOT NULL
);
CREATE INDEX documents_by_partition ON documents (partition, number);
CREATE INDEX documents_by_series ON documents (partition, series, number) WHERE series;
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    documents INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE TABLE progress (
    position INTEGER NOT NULL, incarnation TEXT NOT NULL, below INTEGER NOT NULL
);
INSERT INTO progress VALUES (0, '', 0);
CREATE VIRTUAL TABLE terms USING fts5(
    tokens, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_./:-~!='"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
"""


@dataclass(frozen=True)
class Progress:
    """How far the index is with its store."""

    position: int
    """The change that it has reached."""
    incarnation: str
    """The store's life to which that position belongs; empty for a new index."""
    below: int
    """Older documents with a number below this are still to be indexed; 0 when none are."""


def delete_index(path: Path) -> None:
    """Delete the index's files; nothing, where there are none."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def open_index(path: Path, *, sealed: bool) -> LexicalIndex:
    """The index of a store; that of a sealed one is in memory: no word of it may reach the disk."""
    if not sealed:
        return LexicalIndex(path)
    delete_index(path)
    return LexicalIndex(None)


def scope(kind: str, value: str) -> str:
    """A filter term for a value of that kind, such as a project's id."""
    digest = blake2b(value.encode(), digest_size=12, person=kind.encode()[:16]).hexdigest()
    return f"{kind}{digest}"


class LexicalIndex:
    """An index in a file of its own. Written by one thread, read by any."""

    def __init__(self, path: Path | None) -> None:
        """Open the index, and make it where there is none or it cannot be used.

        Without a path it lives in memory: for a sealed store, of which no word may reach a disk.
        """
        self._path = path
        self._local = threading.local()
        self._generation = 0
        self._damaged = False
        self._lock = threading.RLock()
        self._connections: set[sqlite3.Connection] = set()
        self._in_memory: sqlite3.Connection | None = None
        if path is not None:
            private_folder(path.parent)
        if path is None or not self._usable(path):
            self.reset()

    @property
    def progress(self) -> Progress:
        """How far the index is.

        Raises:
            UnavailableError: The index cannot be read; reason INDEX_DAMAGED where it must be reset.
        """
        if self._damaged:
            raise _unavailable("it is damaged", "INDEX_DAMAGED")
        with self._reading() as connection:
            row = connection.execute("SELECT position, incarnation, below FROM progress")
            return Progress(*row.fetchone())

    def apply(self, documents: Iterable[Document], progress: Progress) -> None:
        """Take the documents and the progress that they make, in one transaction.

        Raises:
            UnavailableError: The index cannot be written; nothing of this was taken.
        """
        with self._lock, self._reading() as connection, connection:
            Taking(connection).take(documents)
            connection.execute(
                "UPDATE progress SET position = ?, incarnation = ?, below = ?",
                (progress.position, progress.incarnation, progress.below),
            )

    def keys(self) -> Iterator[str]:
        """The keys of all documents that can be found."""
        with self._reading() as connection:
            rows = connection.execute("SELECT key FROM documents ORDER BY number")
            yield from [key for (key,) in rows]

    def search(self, terms: Sequence[str], within: Sequence[Within], limit: int) -> list[Match]:
        """The best documents that have one of the terms and are within, best first.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection, _one_moment(connection):
            return search(connection, terms, within, limit)

    def gather(
        self,
        terms: Sequence[str],
        within: Sequence[Within],
        limit: int,
        counted: Sequence[str] = (),
        faint: Collection[str] = (),
        keys: Collection[str] = (),
        alone: bool = False,
    ) -> Gathering:
        """So many documents that promise most, with what they have of the terms, and neighbours.

        Terms that are `counted` find no documents, and `faint` ones hardly any. Documents with
        these keys are gathered whatever they have, and neighbours unless they are wanted `alone`.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection, _one_moment(connection):
            return gather(connection, terms, within, limit, counted, faint, keys, alone)

    def lists(self, words: Iterable[str], within: Sequence[Within]) -> dict[str, int]:
        """How many documents each of these words has, by stem where it has one; none left out.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection:
            return list_sizes(connection, words, within)

    def lists_from(self, prefix: str, within: Sequence[Within], limit: int) -> dict[str, int]:
        """The words that begin so, at most so many of a partition, with their documents.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection:
            return list_sizes_from(connection, prefix, within, limit)

    def count(self, within: Sequence[Within]) -> int:
        """How many documents the partitions have, whatever the filters.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection:
            return sum(size for _, size, _ in partitions_of(connection, within))

    def average_length(self, within: Sequence[Within]) -> float:
        """How many terms a document of the partitions has; 1 where there is none.

        Raises:
            UnavailableError: The index cannot be read.
        """
        with self._reading() as connection:
            found = list(partitions_of(connection, within))
        return sum(length for *_, length in found) / max(sum(size for _, size, _ in found), 1)

    def reset(self) -> None:
        """Throw everything away, so that it is indexed anew.

        Raises:
            UnavailableError: The index cannot be written.
        """
        with self._lock:
            # Other threads may be in the middle of a search: they leave the old file when they are
            # next asked.
            self._generation += 1
            self._damaged = False
            self._drop_connection()
            if self._path is not None:
                delete_index(self._path)
            with self._reading() as connection:
                connection.executescript(f"BEGIN;{_TABLES}PRAGMA user_version = {_VERSION};COMMIT;")

    def close(self) -> None:
        """Close the index, in which no thread may be searching any more."""
        with self._lock:
            self._generation += 1
            while self._connections:
                self._connections.pop().close()
            self._in_memory = None

    def _usable(self, path: Path) -> bool:
        if not path.exists():
            return False
        try:
            connection = self._connection()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            connection.execute("SELECT rowid FROM terms WHERE terms MATCH 'x'").fetchone()
        except sqlite3.DatabaseError:
            return False
        return bool(sound and version == _VERSION)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._path is None:
                # One connection holds an index in memory, so its users take turns.
                with self._lock:
                    yield self._connection()
            else:
                yield self._connection()
        except sqlite3.DatabaseError as error:
            # Full disks and the like are OperationalErrors; that a table is gone is one too.
            operational = isinstance(error, sqlite3.OperationalError)
            if not operational or "no such table" in str(error):
                self._damaged = True
                raise _unavailable(str(error), "INDEX_DAMAGED") from error
            raise _unavailable(str(error), "INDEX_UNAVAILABLE") from error

    def _connection(self) -> sqlite3.Connection:
        if self._path is None:
            if self._in_memory is None:
                self._in_memory = sqlite3.connect(":memory:", check_same_thread=False)
                self._connections.add(self._in_memory)
                self._in_memory.execute("PRAGMA temp_store = MEMORY")
            return self._in_memory
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and self._local.generation == self._generation:
            return connection
        self._drop_connection()
        # Each thread has its own; `close` alone reaches for those of others.
        connection = sqlite3.connect(self._path, timeout=5.0, check_same_thread=False)
        try:
            # NORMAL syncs at checkpoints only, so that a crash of the machine loses the newest
            # transactions whole, which the index catches up with; OFF could lose parts of older
            # ones.
            connection.executescript(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;PRAGMA cache_size = -16000;"
            )
        except sqlite3.DatabaseError:
            connection.close()
            raise
        self._local.connection, self._local.generation = connection, self._generation
        self._connections.add(connection)
        return connection

    def _drop_connection(self) -> None:
        """Close this thread's connection, or that to the index in memory."""
        connection = getattr(self._local, "connection", None) or self._in_memory
        if connection is not None:
            self._local.connection = self._in_memory = None
            self._connections.discard(connection)
            connection.close()


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Let several queries see the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.rollback()


def _unavailable(why: str, reason: str) -> UnavailableError:
    return UnavailableError(
        f"the search index cannot be used: {why}",
        reason=reason,
        fix="check the disk's space and call again; the next write makes a damaged index anew",
    )
