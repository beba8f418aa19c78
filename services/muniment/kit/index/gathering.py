"""Documents that promise most, with what they and their neighbours have of each term.

For who ranks by rules of their own. Neighbours are the documents of the same series that come
before and after: what a turn of a talk is about often stands in the turn before it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from muniment.kit.index.searching import Partition, Within, Word, candidates, is_cut

__all__ = ["Gathered", "Gathering", "gather"]

NEIGHBOURS = 2
"""Documents of the series that are read on each side."""

_WITH_NEIGHBOURS = 40
"""Of so many candidates, the most promising, the neighbours are read."""

_FAINT = 0.01
"""What a faint term promises, in proportion."""


@dataclass(frozen=True)
class Gathered:
    """A document, and what it has of the terms."""

    key: str
    number: int
    place: int
    length: int
    """In terms."""
    series: int
    """0 where it is of none."""
    counts: tuple[float, ...]
    """By term: how often it has it, the same stem counting less."""


@dataclass(frozen=True)
class Gathering:
    """What was gathered."""

    documents: Mapping[int, Gathered]
    """By number: the candidates and their neighbours."""
    candidates: frozenset[int]
    before: Mapping[int, int]
    """By number: that of the document before it in its series, where it is known."""
    after: Mapping[int, int]
    is_cut: bool
    """Whether more documents have the terms than were looked at."""
    average_length: float


_NOTHING = Gathering({}, frozenset(), {}, {}, False, 1.0)

_NEIGHBOURS = """
SELECT one.number,
    (SELECT json_group_array(number) FROM (
        SELECT number FROM documents WHERE partition = one.partition AND series = one.series
            AND series AND number < one.number ORDER BY number DESC LIMIT ?)),
    (SELECT json_group_array(number) FROM (
        SELECT number FROM documents WHERE partition = one.partition AND series = one.series
            AND series AND number > one.number ORDER BY number LIMIT ?))
FROM documents AS one WHERE one.number IN (SELECT value FROM json_each(?))
"""


def gather(
    connection: sqlite3.Connection,
    terms: Sequence[str],
    within: Sequence[Within],
    limit: int,
    counted: Sequence[str] = (),
    faint: Collection[str] = (),
    keys: Collection[str] = (),
    alone: bool = False,
) -> Gathering:
    """So many documents that promise most by the terms they have, and their neighbours.

    What they have of the terms and, behind them, of those that are only counted. Faint terms
    promise next to nothing: so many have them. The documents with these keys are looked at too.
    Neighbours are left out of it where the documents are wanted alone.
    """
    partitions = [found for one in within if (found := Partition.find(connection, one)) is not None]
    if not partitions or not (terms or keys):
        return _NOTHING
    total = sum(one.documents for one in partitions)
    words = [Word(term) for term in terms]
    for word in words:
        word.look_up(connection, partitions, total)
        if word.term in faint:
            word.weight *= _FAINT
    numbers = candidates(connection, words, partitions, limit)[:limit]
    full = len(numbers) == limit
    numbers = list(dict.fromkeys([*numbers, *_numbered(connection, keys, partitions)]))
    before, after = _neighbours(connection, [] if alone else numbers[:_WITH_NEIGHBOURS])
    return Gathering(
        documents=_read(connection, [*words, *map(Word, counted)], {*numbers, *before, *after}),
        candidates=frozenset(numbers),
        before=before,
        after=after,
        is_cut=full or any(any(map(is_cut, word.newest)) for word in words),
        average_length=max(sum(one.length for one in partitions) / total, 1.0),
    )


def _numbered(
    connection: sqlite3.Connection, keys: Collection[str], partitions: Sequence[Partition]
) -> list[int]:
    """The numbers of the documents with these keys that are in the partitions."""
    rows = connection.execute(
        "SELECT number FROM documents WHERE key IN (SELECT value FROM json_each(?))"
        " AND partition IN (SELECT value FROM json_each(?)) ORDER BY number",
        (json.dumps(list(keys)), json.dumps([one.number for one in partitions])),
    )
    return [number for (number,) in rows.fetchall()]


def _neighbours(
    connection: sqlite3.Connection, numbers: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """By number, the one before it and the one after it."""
    rows = connection.execute(_NEIGHBOURS, (NEIGHBOURS, NEIGHBOURS, json.dumps(numbers)))
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for number, earlier, later in rows.fetchall():
        for first, second in pairwise([*reversed(json.loads(earlier)), number, *json.loads(later)]):
            before[second], after[first] = first, second
    return before, after


def _read(
    connection: sqlite3.Connection, words: Sequence[Word], numbers: set[int]
) -> dict[int, Gathered]:
    packed = connection.execute(
        "SELECT json_group_array(json_array(number, key, place, length, series, counts))"
        " FROM documents WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(numbers)),),
    ).fetchone()[0]
    return {
        number: Gathered(key, number, place, length, series, _counts(words, number, counts))
        for number, key, place, length, series, counts in json.loads(packed)
    }


def _counts(words: Sequence[Word], number: int, packed: str) -> tuple[float, ...]:
    # Of a rare word it is known who has it.
    return tuple(
        0.0 if word.all is not None and number not in word.all else word.count(packed)
        for word in words
    )
