"""A lexical index for tests: documents that are their own keys, in one partition or another."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.kit.index.analysis import query_terms
from muniment.kit.index.lexical import Document, LexicalIndex, Progress, Within

__all__ = ["OURS", "THEIRS", "add", "apply", "at", "keys"]

OURS = "p"
THEIRS = "q"


def at(position: int) -> Progress:
    """The progress at that position of one life."""
    return Progress(position, "life", 0)


def add(
    index: LexicalIndex, *texts: str, partition: str = OURS, position: int | None = None
) -> None:
    """Index the texts, each under itself."""
    apply(index, [Document(text, text, partition) for text in texts], position)


def apply(index: LexicalIndex, documents: Sequence[Document], position: int | None = None) -> None:
    """Take the documents; the position moves on by one, where none is given."""
    index.apply(documents, at(index.progress.position + 1 if position is None else position))


def keys(
    index: LexicalIndex, query: str, *within: Within, partition: str = OURS, limit: int = 10
) -> list[str]:
    """Keys of what is found, best first."""
    searched = within or (Within(partition),)
    return [match.key for match in index.search(query_terms(query), searched, limit)]
