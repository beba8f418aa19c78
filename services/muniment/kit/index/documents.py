"""What is indexed, and how it is written into the index's tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Self

from muniment.kit.index.analysis import Terms, analyse
from muniment.kit.index.searching import (
    filter_token,
    packed_counts,
    whole_value,
    word_token,
    words_in,
)

__all__ = ["Document", "Taking"]

_FIRST_OWN_NUMBER = 1 << 62
"""From here the index numbers documents that bring no number."""


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
    series: str = ""
    """Documents of one series are neighbours in the order of their numbers; empty: of none."""
    values: frozenset[str] = frozenset()
    """Terms that are a whole value of it, as the speaker of a turn is, and are looked for as
    `whole_value` writes them."""
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
        parts = (str(self.place), self.partition, *sorted(self.scopes))
        if self.series or self.values:
            parts += ("", self.series, *sorted(self.values))
        for one in parts:
            found.update(b"\0" + one.encode(errors="surrogatepass"))
        return found.hexdigest()

    @property
    def series_number(self) -> int:
        """What stands for the series in the index; 0 for none."""
        digest = blake2b(self.series.encode(errors="surrogatepass"), digest_size=6).digest()
        return int.from_bytes(digest) + 1 if self.series else 0


_Row = tuple[int, str, int, int, str, int, str, str, int, str]
"""A row of the table of documents, and the tokens that FTS5 has of it."""


class Taking:
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
        columns = ", ".join(f"json_extract(value, '$[{column}]')" for column in range(9))
        self._connection.execute(
            f"INSERT INTO documents SELECT {columns} FROM json_each(?)", (packed,)
        )
        self._connection.execute(
            "INSERT INTO terms (rowid, tokens)"
            " SELECT json_extract(value, '$[0]'), json_extract(value, '$[9]') FROM json_each(?)",
            (packed,),
        )

    def _row(self, document: Document, digest: str, before: int) -> _Row:
        """The document's row; so many new ones come before it."""
        found = document.terms
        partition = self._partition(document.partition)
        length = sum(found.exact.values())
        values = dict.fromkeys(map(whole_value, sorted(document.values)), 1)
        self._count(partition, 1, length)
        return (
            self._next_number() + before if document.number is None else document.number,
            document.key,
            partition,
            document.place,
            digest,
            length,
            " ".join(sorted(document.scopes)),
            packed_counts(found.exact | values, found.stems),
            document.series_number,
            _tokens(partition, [*found.stems, *found.stemless, *values], document.scopes),
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
