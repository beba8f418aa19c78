"""Finding the best documents without looking at all that have one of the words.

FTS5 keeps, for each partition and word, the documents that have it, and combines such lists
quickly; ranking is done here, over few candidates. They are the newest documents of each word,
which for a rare word are all of them, and the newest that have several of the common words
together. So the work of a search hardly grows with the index, and nothing is lost but older
documents whose words are all common and stand together in many.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from itertools import chain
from operator import itemgetter

from muniment.kit.index.analysis import is_compound, stem

__all__ = [
    "Match",
    "Partition",
    "Within",
    "Word",
    "candidates",
    "count_in",
    "filter_token",
    "is_cut",
    "list_word",
    "packed_counts",
    "search",
    "whole_value",
    "word_token",
    "words_in",
]

_LIST_DOCUMENTS = 200
"""Documents that are read of one list. A word that more have is a common one."""

_RANKED_DOCUMENTS = 64
"""Most candidates whose words are counted, unless more matches are asked for."""

_BM25_SHARE = 0.25
"""BM25 parts documents that have equally telling words. Alone it ranks worse (measured on LoCoMo:
57 to 62 % of questions with evidence among five turns)."""

_STEM_SHARE = 0.6
"""What a word counts that is the asked one by its stem alone."""

_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""BM25's k1 and b."""

_MARKS = " !#$%&'()*+,;<=>?"
"""How counts are written: by signs that are in no term and need no escape in JSON."""

_COUNTS = {mark: count for count, mark in enumerate(_MARKS)}

_MOST_PER_WEIGHT = 1 + _BM25_SHARE * (_SATURATION + 1)
"""What a word can add to a score, by its weight."""

_PORTION_DOCUMENTS = 48
"""Candidates that are read at once."""


@dataclass(frozen=True)
class Within:
    """Where to search: a partition, and filters that a document of it must all have."""

    partition: str
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Match:
    """A document that was found."""

    key: str
    score: float
    """How telling the terms are that it has, with BM25 to part equals; higher is better."""
    terms: tuple[str, ...]
    """The query's terms that it has, in the query's order."""


def word_token(partition: int, word: str) -> str:
    """What the list of a word's stem, or of a term without one, is found by."""
    return f"{partition}~{word}"


def filter_token(partition: int, scope: str) -> str:
    """What the list of a filter is found by."""
    return f"{partition}!{scope}"


def whole_value(term: str) -> str:
    """What a term is asked by where it must be a whole value of a document."""
    return f"={term}"


def list_word(term: str) -> str:
    """What a term's list is found by: its stem, or the term itself where it has none."""
    return term if term.startswith("=") or is_compound(term) else stem(term)


def packed_counts(exact: dict[str, int], stems: dict[str, int]) -> str:
    """How often a document has each term and stem (1 to 16), for `count_in`."""
    parts = [f"{term} {_MARKS[count]}" for term, count in exact.items()]
    parts += [
        f"~{word} {_MARKS[count]}" for word, count in stems.items() if exact.get(word) != count
    ]
    return f" {' '.join(parts)} "


def count_in(packed: str, needle: str) -> int:
    """How often the document has the term, given between blanks; the stem, where `~` leads it."""
    at = packed.find(needle)
    return 0 if at < 0 else _COUNTS[packed[at + len(needle)]]


def words_in(packed: str) -> set[str]:
    """What the lists of a document's terms are found by."""
    terms = packed.split(" ")[1:-1:2]
    return {list_word(one) for one in terms if not one.startswith("~")}


def search(
    connection: sqlite3.Connection, terms: Sequence[str], within: Iterable[Within], limit: int
) -> list[Match]:
    """The best documents that have one of the terms and are within, best first."""
    partitions = [found for one in within if (found := Partition.find(connection, one)) is not None]
    if not terms or not partitions:
        return []
    total = sum(one.documents for one in partitions)
    words = [Word(term) for term in terms]
    for word in words:
        word.look_up(connection, partitions, total)
    average_length = sum(one.length for one in partitions) / total
    ranking = _Ranking(words, max(average_length, 1.0), limit)
    ranking.consider(connection, candidates(connection, words, partitions, limit))
    return ranking.best()


@dataclass(frozen=True)
class Partition:
    """A partition that has documents, with the filters."""

    filters: str
    number: int
    documents: int
    length: int
    first: int
    last: int
    """Numbers of its oldest and newest document."""

    @classmethod
    def find(cls, connection: sqlite3.Connection, within: Within) -> Partition | None:
        """The partition, unless it has no documents."""
        found = connection.execute(
            "SELECT id, documents, length,"
            " (SELECT min(number) FROM documents WHERE partition = id),"
            " (SELECT max(number) FROM documents WHERE partition = id)"
            " FROM partitions WHERE name = ? AND documents",
            (within.partition,),
        ).fetchone()
        if found is None:
            return None
        tokens = (filter_token(found[0], scope) for scope in sorted(within.scopes))
        return cls("".join(f' AND "{token}"' for token in tokens), *found)

    def newest(self, connection: sqlite3.Connection, tokens: Iterable[str]) -> list[int]:
        """The newest documents that have all the tokens and pass the filters."""
        wanted = " AND ".join(f'"{token}"' for token in tokens)
        # As one row: sqlite3 gives up the interpreter's lock for each.
        found = connection.execute(
            "SELECT group_concat(rowid) FROM"
            " (SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (wanted + self.filters, _LIST_DOCUMENTS),
        ).fetchone()[0]
        return sorted(map(int, found.split(",")), reverse=True) if found else []

    def estimate(self, newest: Sequence[int]) -> float:
        """How many documents a list has, judged by how far back its newest go."""
        if len(newest) < _LIST_DOCUMENTS:
            return len(newest)
        share = (self.last - newest[-1] + 1) / (self.last - self.first + 1)
        return min(len(newest) / share, self.documents)


class Word:
    """A term of the query: what is found by it, and what it tells."""

    def __init__(self, term: str) -> None:
        self.term = term
        self.stem = None if term.startswith("=") or is_compound(term) else stem(term)
        self._exact = f" {term} "
        self._by_stem = f" ~{self.stem} "
        self._as_stem = f" {self.stem} "
        self.newest: list[list[int]] = []
        """By partition: the newest documents that have it."""
        self.weight = 0.0
        self.all: set[int] | None = None
        """All documents that have it; None for a common word."""

    def look_up(
        self, connection: sqlite3.Connection, partitions: Sequence[Partition], total: int
    ) -> None:
        """Read its lists, and weigh it among so many documents."""
        frequency = 0.0
        for one in partitions:
            newest = one.newest(connection, [self.token(one)])
            self.newest.append(newest)
            frequency += one.estimate(newest)
        # Inverse document frequency: how much it says that a document has the term (BM25+).
        self.weight = math.log(1 + (max(total - frequency, 0.0) + 0.5) / (frequency + 0.5))
        if not any(map(is_cut, self.newest)):
            self.all = set(chain.from_iterable(self.newest))

    def token(self, partition: Partition) -> str:
        """What its list in the partition is found by."""
        return word_token(partition.number, self.stem or self.term)

    def count(self, packed: str) -> float:
        """How often a document has the word."""
        exact = count_in(packed, self._exact)
        if self.stem is None:
            return exact
        by_stem = count_in(packed, self._by_stem)
        if not by_stem:
            by_stem = exact if self.term == self.stem else count_in(packed, self._as_stem)
        return exact + _STEM_SHARE * by_stem


def is_cut(newest: Sequence[int]) -> bool:
    """Whether a list has more documents than were read of it."""
    return len(newest) == _LIST_DOCUMENTS


def candidates(
    connection: sqlite3.Connection,
    words: Sequence[Word],
    partitions: Sequence[Partition],
    limit: int,
) -> list[int]:
    """Numbers of the documents that promise most; newer ones first where they promise the same."""
    promise: dict[int, float] = {}
    for place, _ in enumerate(partitions):
        for word in words:
            for number in word.newest[place]:
                promise[number] = promise.get(number, 0.0) + word.weight
    for place, partition in enumerate(partitions):
        common = [word for word in words if is_cut(word.newest[place])]
        if not _are_enough(promise, limit, common):
            for number, least in _combined(connection, partition, common):
                promise[number] = max(promise.get(number, 0.0), least)
    ordered = sorted(zip(promise.values(), promise, strict=True), reverse=True)
    return [number for _, number in ordered[: max(_RANKED_DOCUMENTS, limit)]]


def _are_enough(promise: Mapping[int, float], limit: int, common: Sequence[Word]) -> bool:
    """Whether so many documents are better than any that has common words alone."""
    most = _MOST_PER_WEIGHT * sum(word.weight for word in common)
    return sum(weight > most for weight in promise.values()) >= limit


def _combined(
    connection: sqlite3.Connection, partition: Partition, words: Sequence[Word]
) -> Iterator[tuple[int, float]]:
    """Newest documents that have several of the common words, and what these words tell.

    The most telling ones first, then one more each time, for as long as too many have them all:
    FTS5 walks through the lists of common words whole, so few of them are asked for together.
    """
    telling = sorted(words, key=lambda word: -word.weight)
    for size in range(2, len(telling) + 1):
        together = telling[:size]
        tokens = [word.token(partition) for word in together]
        found = partition.newest(connection, tokens)
        least = sum(word.weight for word in together)
        yield from ((number, least) for number in found)
        if len(found) <= _RANKED_DOCUMENTS:
            return


class _Ranking:
    """The best of the documents that were considered, by how telling the words are they have."""

    def __init__(self, words: Sequence[Word], average_length: float, limit: int) -> None:
        self._words = words
        self._average_length = average_length
        self._limit = limit
        self._scores: list[float] = []
        """A heap of the best so many."""
        self._found: list[tuple[float, int, str, Match]] = []

    def consider(self, connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
        """Look at the documents, but for those that cannot be among the best."""
        for start in range(0, len(numbers), _PORTION_DOCUMENTS):
            portion = numbers[start : start + _PORTION_DOCUMENTS]
            hopeful = [number for number in portion if self._may_be_among_the_best(number)]
            rows = connection.execute(
                "SELECT json_group_array(json_array(number, key, place, length, counts))"
                " FROM documents WHERE number IN (SELECT value FROM json_each(?))",
                (json.dumps(hopeful),),
            ).fetchone()[0]
            for number, key, place, length, counts in json.loads(rows):
                match = self._match(number, key, length, counts)
                self._found.append((-match.score, -place, key, match))
                if len(self._scores) < self._limit:
                    heappush(self._scores, match.score)
                else:
                    heappushpop(self._scores, match.score)

    def best(self) -> list[Match]:
        """Best first; of equals that with the greater place."""
        self._found.sort(key=itemgetter(0, 1, 2))
        return [match for *_, match in self._found[: self._limit]]

    def _may_be_among_the_best(self, number: int) -> bool:
        if len(self._scores) < self._limit:
            return True
        most = sum(word.weight for word in self._words if word.all is None or number in word.all)
        return most * _MOST_PER_WEIGHT >= self._scores[0]

    def _match(self, number: int, key: str, length: int, counts: str) -> Match:
        relative = length / self._average_length
        damping = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative)
        score, had = 0.0, []
        for word in self._words:
            if word.all is not None and number not in word.all:
                continue
            count = word.count(counts)
            if count:
                had.append(word.term)
                bm25 = count * (_SATURATION + 1) / (count + damping)
                score += word.weight * (1 + _BM25_SHARE * bm25)
        return Match(key, score, tuple(had))
