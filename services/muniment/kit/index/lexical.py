"""The lexical index: SQLite FTS5 over analysed terms, in partitions.

The index is derived. It remembers how far it has come with its store, in the transaction of the
rows; what it lacks it takes from the store, and a file that is damaged, or was made by another
analysis, is made anew.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Self

from muniment.kit.errors import UnavailableError
from muniment.kit.files import private_folder
from muniment.kit.index.analysis import ANALYSIS_VERSION, Terms, analyse
from muniment.kit.index.searching import (
    Match,
    Within,
    filter_token,
    packed_counts,
    search,
    word_token,
    words_in,
)

__all__ = [
    "Document",
    "LexicalIndex",
    "Match",
    "Progress",
    "Within",
    "delete_index",
    "scope",
]

_VERSION = 100 * ANALYSIS_VERSION + 3
"""Raised with the tables too."""

_FIRST_OWN_NUMBER = 1 << 62
"""From here the index numbers documents that bring no number."""

_TABLES = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    partition INTEGER NOT NULL,
    place INTEGER NOT NULL,
    digest TEXT NOT NULL,
    length INTEGER NOT NULL,
    scopes TEXT NOT NULL,
    counts TEXT NOT NULL
);
CREATE INDEX documents_by_partition ON documents (partition, number);
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
    tokens, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_./:-~!'"
);
"""


@dataclass(frozen=True)
class Document:
    """What is indexed under a key."""

    key: str
    """Any text without zeros, of which SQLite's JSON makes ends."""
    text: str
    partition: str = ""
    """A search is within partitions, and does not feel the size of the others."""
    scopes: frozenset[str] = frozenset()
    place: int = 0
    """Of documents that answer equally well the one with the greater place comes first."""
    number: int | None = None
    """Its own number, under 2^62, greater for newer documents; the index has one where None."""
    gone: bool = False
    """Whether it is to be found no more."""

    @cached_property
    def terms(self) -> Terms:
        """What is searched for."""
        return analyse(self.text)

    def prepared(self) -> Self:
        """The document, analysed: what takes longest, before the index is held."""
        _ = self.terms
        return self

    @property
    def digest(self) -> str:
        """What tells whether it is indexed as it is."""
        found = blake2b(self.text.encode(errors="surrogatepass"), digest_size=16)
        for one in (str(self.place), self.partition, *sorted(self.scopes)):
            found.update(b"\0" + one.encode())
        return found.hexdigest()


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
            _Taking(connection).take(documents)
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


_Row = tuple[int, str, int, int, str, int, str, str, str]
"""A row of the table of documents, and the tokens that FTS5 has of it."""


class _Taking:
    """Takes documents in one transaction.

    Each statement takes all rows at once, as JSON: sqlite3 gives up the interpreter's lock for
    every step of a statement, and among busy threads has to wait until it gets it back.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._partitions: dict[str, int] = {}
        self._changes: dict[int, tuple[int, int]] = {}
        """By partition: how many documents more, and how much longer together."""

    def take(self, documents: Iterable[Document]) -> None:
        """Put the documents in the place of what is there under their keys."""
        latest = {document.key: document for document in documents}
        known = self._known(latest)
        new: list[_Row] = []
        # FTS5 takes rising numbers best.
        for document in sorted(latest.values(), key=_number):
            digest = document.digest
            if document.key in known:
                if known[document.key] == digest and not document.gone:
                    continue
                self._remove(document.key)
            if not document.gone:
                new.append(self._row(document, digest, len(new)))
        self._insert(new)
        for partition, (more, longer) in self._changes.items():
            self._connection.execute(
                "UPDATE partitions SET documents = documents + ?, length = length + ? WHERE id = ?",
                (more, longer, partition),
            )

    def _known(self, keys: Iterable[str]) -> dict[str, str]:
        """The digests of those that are indexed."""
        found = self._connection.execute(
            "SELECT json_group_object(key, digest) FROM documents"
            " WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(list(keys)),),
        ).fetchone()[0]
        known: dict[str, str] = json.loads(found)
        return known

    def _insert(self, rows: Sequence[_Row]) -> None:
        if not rows:
            return
        packed = json.dumps(rows, ensure_ascii=False)
        columns = ", ".join(f"json_extract(value, '$[{column}]')" for column in range(8))
        self._connection.execute(
            f"INSERT INTO documents SELECT {columns} FROM json_each(?)", (packed,)
        )
        self._connection.execute(
            "INSERT INTO terms (rowid, tokens)"
            " SELECT json_extract(value, '$[0]'), json_extract(value, '$[8]') FROM json_each(?)",
            (packed,),
        )

    def _row(self, document: Document, digest: str, before: int) -> _Row:
        """The document's row; so many new ones come before it."""
        found = document.terms
        partition = self._partition(document.partition)
        length = sum(found.exact.values())
        self._count(partition, 1, length)
        return (
            self._next_number() + before if document.number is None else document.number,
            document.key,
            partition,
            document.place,
            digest,
            length,
            " ".join(sorted(document.scopes)),
            packed_counts(found.exact, found.stems),
            _tokens(partition, [*found.stems, *found.stemless], document.scopes),
        )

    def _remove(self, key: str) -> None:
        known = self._connection.execute(
            "DELETE FROM documents WHERE key = ?"
            " RETURNING number, partition, length, scopes, counts",
            (key,),
        ).fetchone()
        if known is None:
            return
        number, partition, length, scopes, counts = known
        tokens = _tokens(partition, words_in(counts), scopes.split())
        self._connection.execute(
            "INSERT INTO terms (terms, rowid, tokens) VALUES ('delete', ?, ?)", (number, tokens)
        )
        self._count(partition, -1, -length)

    def _partition(self, name: str) -> int:
        known = self._partitions.get(name)
        if known is None:
            known = self._partitions[name] = self._connection.execute(
                "INSERT INTO partitions (name, documents, length) VALUES (?, 0, 0)"
                " ON CONFLICT (name) DO UPDATE SET name = name RETURNING id",
                (name,),
            ).fetchone()[0]
        return known

    def _next_number(self) -> int:
        newest = self._connection.execute("SELECT max(number) FROM documents").fetchone()[0] or 0
        return int(max(newest + 1, _FIRST_OWN_NUMBER))

    def _count(self, partition: int, more: int, longer: int) -> None:
        before = self._changes.get(partition, (0, 0))
        self._changes[partition] = before[0] + more, before[1] + longer


def _number(document: Document) -> int:
    return _FIRST_OWN_NUMBER if document.number is None else document.number


def _tokens(partition: int, words: Iterable[str], scopes: Iterable[str]) -> str:
    """What FTS5 has of a document: each word and filter once, with its partition."""
    tokens = [word_token(partition, word) for word in words]
    tokens += [filter_token(partition, one) for one in scopes]
    return " ".join(tokens)


def _unavailable(why: str, reason: str) -> UnavailableError:
    return UnavailableError(
        f"the search index cannot be used: {why}",
        reason=reason,
        fix="check the disk's space and call again; the next write makes a damaged index anew",
    )
