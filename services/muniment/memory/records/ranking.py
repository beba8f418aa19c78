"""Orders the records that were gathered by how well they answer.

A word counts where a record has it, less where a neighbour of its series has it: what a turn of a
talk is about often stands in the turn before. A word that is a whole value of the record, as its
speaker or its name, counts more than one in passing. (Measured on LoCoMo; see
benchmarks/typed_search.)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from muniment.kit.index.gathering import Gathered, Gathering
from muniment.kit.index.lexical import whole_value
from muniment.memory.records.support import PIECES_SHARE, Support
from muniment.memory.records.texts import ASKS

__all__ = ["Ranked", "Ranking"]

_BM25_SHARE = 0.1
"""What repeated words and short records count beside plain presence."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""BM25's k1 and b."""
_TELLING_POWER = 0.7
"""Tames rare words: one odd word must not outweigh three telling ones."""
_OF_NEIGHBOURS = (0.6, 0.45)
"""What a word counts that a neighbour has, one and two records away."""
_AFTER_QUESTION = 1.8
"""Times that, for the record after one that asks."""
_WHOLE_VALUE = 5.0
_DENSE_SHARE = 0.75
"""What the cosine counts beside the lexical score, which is made to be at most 1."""
_DENSE_OF_NEIGHBOURS = (0.15, 0.075)
_LENGTH_PRIOR = 0.3
"""Per e-fold of length: of equals, records that say more."""
_SERIES_SHARE, _SERIES_HALF = 1.0, 1.5
"""The series' own score, and how many records with a word give it half of that."""


@dataclass
class Ranked:
    """A record that was gathered."""

    document: Gathered
    had: frozenset[int]
    """Places in the list of supports: the words that it has."""
    coverage: float
    """Share of the question's weight that it has."""
    score: float = 0.0


class Ranking:
    """The gathered records with what each has of the question."""

    def __init__(
        self,
        gathering: Gathering,
        supports: Sequence[Support],
        terms: Sequence[str],
        values: Mapping[int, Sequence[str]],
        similarity: Mapping[str, float] | None = None,
    ) -> None:
        """`terms` are what was gathered for; `values`, by word, those of whole values.

        `similarity`, by key, is how near the records are by meaning, where that was asked for.
        """
        at = {term: place for place, term in enumerate(terms)}
        self._gathering = gathering
        self._supports = supports
        self._similarity = similarity or {}
        self._weight = sum(support.share for support in supports) or 1.0
        self._telling = [float(support.telling**_TELLING_POWER) for support in supports]
        self._terms = [[at[term] for term in support.terms] for support in supports]
        self._pieces = [[at[term] for term in support.pieces] for support in supports]
        self._values = [
            [at[term] for term in values.get(place, ()) if term in at]
            for place in range(len(supports))
        ]
        self._asking = at.get(whole_value(ASKS))
        self._worths = {
            number: self._worths_of(document) for number, document in gathering.documents.items()
        }

    @cached_property
    def ranked(self) -> list[Ranked]:
        """The best first; of equals the newest."""
        found = [self._ranked(number) for number in self._gathering.documents]
        bonus = self._series_bonus(found)
        for one in found:
            one.score += bonus.get(one.document.series, 0.0)
        if self._similarity:
            most = max((one.score for one in found), default=0.0) or 1.0
            for one in found:
                one.score = one.score / most + _DENSE_SHARE * self._closeness(one.document.number)
        found.sort(key=lambda one: (-one.score, -one.document.place, one.document.key))
        return found

    def _ranked(self, number: int) -> Ranked:
        document = self._gathering.documents[number]
        own = self._worths[number]
        best = dict(own)
        for share, neighbour in self._around(number):
            for place, worth in self._worths[neighbour].items():
                # A whole value is the record's own.
                if share * worth > best.get(place, 0.0) and not self._supports[place].as_value:
                    best[place] = share * worth
        score = _LENGTH_PRIOR * math.log(document.length + 1)
        for place, worth in best.items():
            telling = self._telling[place]
            if not self._supports[place].as_value:
                score += worth * telling
            elif any(document.counts[at] for at in self._values[place]):
                score += max(_WHOLE_VALUE, telling)
            else:
                score += telling
        share = sum(self._supports[place].share for place in own) / self._weight
        return Ranked(document, frozenset(own), share, score)

    def _around(self, number: int) -> Iterator[tuple[float, int]]:
        """The neighbours, and what a word counts that they have."""
        documents = self._gathering.documents
        for follow in (self._gathering.before, self._gathering.after):
            neighbour = follow.get(number)
            for steps, share in enumerate(_OF_NEIGHBOURS):
                if neighbour is None or neighbour not in documents:
                    break
                lifted = steps == 0 and follow is self._gathering.before and self._asks(neighbour)
                yield share * (_AFTER_QUESTION if lifted else 1.0), neighbour
                neighbour = follow.get(neighbour)

    def _asks(self, number: int) -> bool:
        counts = self._gathering.documents[number].counts
        return self._asking is not None and counts[self._asking] > 0

    def _worths_of(self, document: Gathered) -> dict[int, float]:
        """By word that the record has: 1, and a little for how often (BM25)."""
        relative = document.length / self._gathering.average_length
        damping = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative)
        worths = {}
        for place in range(len(self._supports)):
            count = self._count(document.counts, place)
            if count:
                worths[place] = 1 + _BM25_SHARE * count * (_SATURATION + 1) / (count + damping)
        return worths

    def _count(self, counts: Sequence[float], place: int) -> float:
        """How often the record has the word, in whatever form."""
        own = 0.0
        for at in self._terms[place]:
            if counts[at] > own:
                own = counts[at]
        pieces = self._pieces[place]
        if own or not pieces:
            return own
        had = sum(counts[at] > 0 for at in pieces)
        needed = 1.0 if self._supports[place].word.variants else PIECES_SHARE
        return 1.0 if had >= needed * len(pieces) else 0.0

    def _closeness(self, number: int) -> float:
        """How near the record is to the question by meaning, and a little its neighbours."""
        documents = self._gathering.documents
        close = max(0.0, self._similarity.get(documents[number].key, 0.0))
        for follow in (self._gathering.before, self._gathering.after):
            neighbour: int | None = number
            for share in _DENSE_OF_NEIGHBOURS:
                neighbour = follow.get(neighbour) if neighbour is not None else None
                if neighbour is None or neighbour not in documents:
                    break
                key = documents[neighbour].key
                close += share * max(0.0, self._similarity.get(key, 0.0))
        return close

    def _series_bonus(self, found: Sequence[Ranked]) -> dict[int, float]:
        """What a record gains by how many candidates of its series have each word."""
        had: dict[int, Counter[int]] = {}
        for one in found:
            if one.document.series:
                counts = had.setdefault(one.document.series, Counter())
                if one.document.number in self._gathering.candidates:
                    counts.update(one.had)
        bonus = dict.fromkeys(had, 0.0)
        for place, _ in enumerate(self._supports):
            having = sum(place in counts for counts in had.values())
            # Inverse frequency among the series.
            telling = math.log(1 + (len(had) - having + 0.5) / (having + 0.5))
            for series, counts in had.items():
                share = counts[place] / (counts[place] + _SERIES_HALF)
                bonus[series] += _SERIES_SHARE * telling * share
        return bonus
