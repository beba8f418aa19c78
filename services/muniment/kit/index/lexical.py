"""The lexical index: SQLite FTS5 over analysed terms, with filters inside the query.

The index is derived. It remembers the change position that it has reached, in the transaction of
the rows; what it lacks it takes from the store, and a file that is damaged, or was made by another
analysis, is made anew.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from muniment.kit.errors import UnavailableError
from muniment.kit.files import private_folder
from muniment.kit.index.analysis import ANALYSIS_VERSION, analyse, stem

__all__ = ["Document", "LexicalIndex", "Match", "all_of", "any_of", "scope"]

_WEIGHTS = "0.0, 1.0, 0.6"
"""BM25 weights of the columns: filters count nothing, exact terms more than stems."""

_BM25_SHARE = 0.25
"""BM25 picks the candidates and parts equals. Alone it ranks worse, since its inverse document
frequency is nil for a term that half of a small store has (measured on LoCoMo: 57 to 62 % of
questions with evidence among five turns)."""

_TABLES = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    live INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE position (change INTEGER NOT NULL);
INSERT INTO position VALUES (0);
CREATE VIRTUAL TABLE terms USING fts5(
    scopes, exact, stems, content='', tokenize="ascii tokenchars '_./:-'"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, row);
"""


@dataclass(frozen=True)
class Document:
    """What is indexed under a key.

    A document without text takes the key out of every search, and one with text brings it back.
    The terms and scopes of a key are those that it was given first.
    """

    key: str
    text: str | None
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Match:
    """A document that was found."""

    key: str
    score: float
    """How telling the terms are that it has, with BM25 to part equals; higher is better."""
    terms: tuple[str, ...]
    """The query's terms that it has, in the query's order."""


def scope(kind: str, value: str) -> str:
    """A filter term for a value of that kind, such as a project's id."""
    digest = blake2b(value.encode(), digest_size=12, person=kind.encode()[:16]).hexdigest()
    return f"{kind}{digest}"


def all_of(*filters: str) -> str:
    """A filter that holds where all of them do."""
    return f"({' AND '.join(filters)})"


def any_of(*filters: str) -> str:
    """A filter that holds where one of them does."""
    return f"({' OR '.join(filters)})"


class LexicalIndex:
    """An index in a file of its own. Written by one thread, read by any."""

    def __init__(self, path: Path) -> None:
        """Open the index, and make it where there is none or it cannot be used."""
        private_folder(path.parent)
        self._path = path
        self._local = threading.local()
        self._generation = 0
        self._connections: set[sqlite3.Connection] = set()
        self._damaged = False
        if not self._usable():
            self.reset()

    @property
    def position(self) -> int:
        """The change that the index has reached."""
        with self._reading() as connection:
            return int(connection.execute("SELECT change FROM position").fetchone()[0])

    @property
    def is_damaged(self) -> bool:
        """Whether a search has met damage, so that the index is to be made anew."""
        return self._damaged

    def apply(self, documents: Iterable[Document], position: int) -> None:
        """Take the documents and the position that they reach, in one transaction.

        Raises:
            UnavailableError: The index cannot be written; nothing of this was taken.
        """
        try:
            connection = self._connection()
            with connection:
                for document in documents:
                    self._take(connection, document)
                connection.execute("UPDATE position SET change = ?", (position,))
        except sqlite3.OperationalError as error:
            raise _unavailable(error) from error

    def search(self, terms: Sequence[str], within: str, limit: int) -> list[Match]:
        """The best documents that have one of the terms and pass the filter, best first.

        Raises:
            UnavailableError: The index cannot be read.
        """
        if not terms:
            return []
        wanted = " OR ".join(_either(term) for term in terms)
        with self._reading() as connection:
            rows = connection.execute(
                f"SELECT documents.number, documents.key, bm25(terms, {_WEIGHTS}) AS rank"
                " FROM terms JOIN documents ON documents.number = terms.rowid"
                " WHERE terms MATCH ? AND documents.live"
                " ORDER BY rank, documents.number DESC LIMIT ?",
                (f"{{scopes}} : {within} AND ({wanted})", limit),
            ).fetchall()
            if not rows:
                return []
            having = _having(connection, terms, within, [number for number, _, _ in rows])
            weights = _weights(connection, terms)
        matches = []
        for number, key, rank in rows:
            had = tuple(term for term in terms if number in having[term])
            score = sum(weights[term] for term in had) - _BM25_SHARE * rank
            matches.append((-score, -number, Match(key, score, had)))
        return [match for _, _, match in sorted(matches, key=lambda one: one[:2])]

    def reset(self) -> None:
        """Throw everything away, so that it is indexed anew."""
        # Other threads may be in the middle of a search: they leave the old file when they are next
        # asked.
        self._generation += 1
        self._damaged = False
        self._drop_connection()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        connection = self._connection()
        with connection:
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA user_version = {ANALYSIS_VERSION}")

    def close(self) -> None:
        """Close the file, in which no thread may be searching any more."""
        self._generation += 1
        while self._connections:
            self._connections.pop().close()

    def _take(self, connection: sqlite3.Connection, document: Document) -> None:
        connection.execute("UPDATE documents SET live = 0 WHERE key = ?", (document.key,))
        if document.text is None:
            return
        number = connection.execute(
            "INSERT INTO documents (key) VALUES (?) ON CONFLICT (key) DO UPDATE SET live = 1"
            " RETURNING number",
            (document.key,),
        ).fetchone()[0]
        if connection.execute("SELECT 1 FROM terms WHERE rowid = ?", (number,)).fetchone():
            return
        found = analyse(document.text)
        connection.execute(
            "INSERT INTO terms (rowid, scopes, exact, stems) VALUES (?, ?, ?, ?)",
            (
                number,
                " ".join(sorted(document.scopes)),
                " ".join(found.exact.elements()),
                " ".join(found.stems.elements()),
            ),
        )

    def _usable(self) -> bool:
        if not self._path.exists():
            return False
        try:
            connection = self._connection()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            connection.execute("SELECT rowid FROM terms WHERE terms MATCH 'x'").fetchone()
        except sqlite3.DatabaseError:
            return False
        return bool(sound and version == ANALYSIS_VERSION)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection()
        except sqlite3.DatabaseError as error:
            # The subclasses are of the moment: locked, full, no such table.
            self._damaged = self._damaged or type(error) is sqlite3.DatabaseError
            raise _unavailable(error) from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and self._local.generation == self._generation:
            return connection
        self._drop_connection()
        # Each thread has its own; `close` alone reaches for those of others.
        connection = sqlite3.connect(self._path, timeout=5.0, check_same_thread=False)
        try:
            # Synced at checkpoints only: a crash of the machine may cost the newest rows, which
            # the index takes from the store again, and never leaves a file that is half written.
            connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        self._local.connection, self._local.generation = connection, self._generation
        self._connections.add(connection)
        return connection

    def _drop_connection(self) -> None:
        """Close this thread's connection, where it has one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            self._connections.discard(connection)
            connection.close()


def _either(term: str) -> str:
    """The FTS5 expression for a term, as it stands or by its stem."""
    return f'({{exact}} : "{term}" OR {{stems}} : "{stem(term)}")'


def _having(
    connection: sqlite3.Connection, terms: Sequence[str], within: str, numbers: Sequence[int]
) -> dict[str, set[int]]:
    """Which of the documents have which term."""
    # A range is one pass over a term's documents; asking for each number is one pass a number.
    bounds = min(numbers), max(numbers)
    return {
        term: {
            number
            for (number,) in connection.execute(
                "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid BETWEEN ? AND ?",
                (f"{{scopes}} : {within} AND {_either(term)}", *bounds),
            )
        }
        for term in terms
    }


def _weights(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, float]:
    """Inverse document frequency: how much it says that a document has the term (BM25+)."""
    total = connection.execute("SELECT max(number) FROM documents").fetchone()[0]
    weights = {}
    for term in terms:
        counts = connection.execute(
            "SELECT max(doc) FROM vocabulary WHERE term IN (?, ?)", (term, stem(term))
        ).fetchone()
        count = min(counts[0] or 0, total)
        weights[term] = math.log(1 + (total - count + 0.5) / (count + 0.5))
    return weights


def _unavailable(error: sqlite3.Error) -> UnavailableError:
    return UnavailableError(
        f"the search index cannot be used: {error}",
        reason="INDEX_UNAVAILABLE",
        fix="check the disk's space and call again; the next write makes a damaged index anew",
    )
