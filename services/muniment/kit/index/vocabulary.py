"""What words an index has: how many documents have one, and which words begin alike.

FTS5 keeps its words in order, so both are looked up and nothing is walked through whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from muniment.kit.index.searching import Within, list_word, word_token

__all__ = ["list_sizes", "list_sizes_from", "partitions_of"]

_PAST_ALL = "\U0010ffff"
"""Comes after every character of a term."""


def partitions_of(
    connection: sqlite3.Connection, within: Iterable[Within]
) -> Iterator[tuple[int, int, int]]:
    """The number of each partition that has documents, and how many, with how many terms."""
    for one in within:
        yield from connection.execute(
            "SELECT id, documents, length FROM partitions WHERE name = ? AND documents",
            (one.partition,),
        )


def list_sizes(
    connection: sqlite3.Connection, words: Iterable[str], within: Sequence[Within]
) -> dict[str, int]:
    """How many documents have each word, by stem where it has one; those that none has left out."""
    by_list: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        # More than one word may have the same stem.
        by_list.setdefault(list_word(word), []).append(word)
    sizes: dict[str, int] = {}
    for partition, *_ in partitions_of(connection, within):
        start = len(word_token(partition, ""))
        tokens = [word_token(partition, one) for one in by_list]
        found = connection.execute(
            "SELECT json_group_object(term, doc) FROM vocabulary"
            " WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps(tokens, ensure_ascii=False),),
        ).fetchone()[0]
        for term, size in json.loads(found).items():
            for word in by_list[term[start:]]:
                sizes[word] = sizes.get(word, 0) + size
    return sizes


def list_sizes_from(
    connection: sqlite3.Connection, prefix: str, within: Sequence[Within], limit: int
) -> dict[str, int]:
    """The words (stems, where they have one) that begin so, with how many documents have them."""
    sizes: dict[str, int] = {}
    for partition, *_ in partitions_of(connection, within):
        first = word_token(partition, prefix)
        rows = connection.execute(
            "SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ? LIMIT ?",
            (first, first + _PAST_ALL, limit),
        )
        start = len(first) - len(prefix)
        for term, size in rows:
            sizes[term[start:]] = sizes.get(term[start:], 0) + size
    return sizes
