"""FTS5 with its own ranking: the filter and all words in one query, ordered by bm25().

What the index was before; kept as the result that speaks for ranking outside of FTS5.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.store.recall import CANDIDATES
from muniment.kit.index.analysis import analyse, stem

__all__ = ["Bm25Engine"]


class Bm25Engine:
    """Exact terms and stems in columns, the project as a word of a third."""

    def __init__(self, folder: Path) -> None:
        """Make it in the folder."""
        self._path = folder / "bm25.sqlite3"
        self._connection = sqlite3.connect(self._path)
        self._connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        self._connection.execute(
            "CREATE VIRTUAL TABLE terms USING fts5(scopes, exact, stems, content='',"
            " tokenize=\"unicode61 remove_diacritics 0 tokenchars '_./:-'\")"
        )
        self._numbers: list[int] = []

    def add(self, project: int, first: int, texts: Sequence[str]) -> None:
        """Take texts, numbered from `first` in their project."""
        with self._connection:
            for number, text in enumerate(texts, first):
                found = analyse(text)
                self._numbers.append(number)
                self._connection.execute(
                    "INSERT INTO terms (rowid, scopes, exact, stems) VALUES (?, ?, ?, ?)",
                    (
                        len(self._numbers),
                        f"project{project}",
                        _repeated(found.exact),
                        _repeated(found.stems),
                    ),
                )

    def search(self, project: int, terms: Sequence[str]) -> list[int]:
        """Numbers of the best texts of the project."""
        wanted = " OR ".join(
            f'({{exact}} : "{term}" OR {{stems}} : "{stem(term)}")' for term in terms
        )
        rows = self._connection.execute(
            "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY bm25(terms, 0.0, 1.0, 0.6)"
            " LIMIT ?",
            (f"{{scopes}} : project{project} AND ({wanted})", CANDIDATES),
        ).fetchall()
        return [self._numbers[number - 1] for (number,) in rows]

    def finish(self) -> None:
        """Be done with adding."""

    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self._path.stat().st_size


def _repeated(counts: dict[str, int]) -> str:
    return " ".join(term for term, count in counts.items() for _ in range(count))
