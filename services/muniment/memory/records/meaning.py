"""What the dense index adds: records that say what is asked in other words.

A vector always finds something, so what is near is not yet an answer. A word that no record has is
stood for by another one of the record only where the two are near by themselves; a whole question
is only where hardly any of its words is to be had, and none of them is a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from muniment.memory.records.questions import Question, Weight
from muniment.memory.records.ranking import Ranked
from muniment.memory.records.reading import Shelf
from muniment.memory.records.support import Support
from muniment.v1 import records_pb2

__all__ = ["Dense", "Meaning", "Near", "is_understood"]

NEAREST_RECORDS = 64

WORD_LEAST = 0.55
"""From this cosine on, another word stands for the asked one. (On the labelled set synonyms have
0.59 to 0.86, unrelated attributes at most 0.45.)"""

QUESTION_LEAST = 0.34
"""From this cosine on, a record may answer a question of whose ideas it has less than half."""

QUESTION_LEAST_OF_ONE = 0.45
"""As much must it be where the question has one idea only."""

_JUDGED_RECORDS = 8
_COMPARED_WORDS = 40
_NEAR_SHARE = 0.8
"""Records so near in proportion to the nearest come with it."""


@dataclass(frozen=True)
class Near:
    """A record that is near to the question by meaning."""

    key: str
    similarity: float


class Dense(Protocol):
    """Finds by meaning. Not needed: without it the search goes by words alone."""

    def nearest(
        self, text: str, limit: int, kinds: Sequence[records_pb2.RecordKind.ValueType]
    ) -> Sequence[Near]:
        """The records nearest to the text, nearest first."""
        ...

    def similarities(self, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """By asked text: how near each of the other texts is, from -1 to 1."""
        ...


@dataclass(frozen=True)
class SaidOtherwise:
    """A record that answers by meaning, and the words that stand for asked ones."""

    key: str
    forms: tuple[tuple[str, str], ...]


def is_understood(question: Question) -> bool:
    """Whether the model knows the question's language: it was trained on English."""
    return question.language == "en" and all(word.text.isascii() for word in question.words)


class Meaning:
    """The nearest records of one question."""

    def __init__(
        self,
        dense: Dense,
        question: Question,
        text: str,
        kinds: Sequence[records_pb2.RecordKind.ValueType],
    ) -> None:
        """`text` is what is embedded of the question."""
        self._dense = dense
        self._question = question
        self._nearest = dense.nearest(text, NEAREST_RECORDS, kinds)

    @cached_property
    def similarity(self) -> dict[str, float]:
        """By key of the nearest."""
        return {near.key: near.similarity for near in self._nearest}

    def answering(
        self, supports: Sequence[Support], ranked: Sequence[Ranked], shelf: Shelf
    ) -> list[SaidOtherwise]:
        """The nearest records that say what is asked, if in other words; nearest first."""
        had = {one.document.key: one.had for one in ranked}
        ideas = self._question.ideas
        most = max((_held(ideas, one.had) for one in ranked), default=0)
        apart = 2 * most - len(ideas)
        found = []
        for near in self._nearest[:_JUDGED_RECORDS]:
            judged = self._judged(near, supports, had.get(near.key, frozenset()), shelf, apart)
            if judged is not None:
                found.append(judged)
        return found

    def near(self, answering: Sequence[SaidOtherwise]) -> list[str]:
        """Keys of the answering records and of those that are hardly less near."""
        keys = [one.key for one in answering]
        least = _NEAR_SHARE * max((self.similarity[key] for key in keys), default=1.0)
        also = [one.key for one in self._nearest if one.similarity >= least]
        return list(dict.fromkeys([*keys, *also]))

    def _judged(
        self,
        near: Near,
        supports: Sequence[Support],
        had: frozenset[int],
        shelf: Shelf,
        apart: int,
    ) -> SaidOtherwise | None:
        """`apart` is below 0 where no record has half of the question's ideas, 0 where one has."""
        ideas = self._question.ideas
        lacking = [idea for idea in ideas if not had.issuperset(idea)]
        named = [idea for idea in ideas if supports[idea[0]].word.weight is Weight.NAME]
        if any(idea in lacking for idea in named):
            return None
        forms = self._stood_for(
            near, [supports[place] for idea in lacking for place in idea], shelf
        )
        if len(forms) == len(lacking) and near.similarity >= QUESTION_LEAST:
            return SaidOtherwise(near.key, tuple(forms))
        least = QUESTION_LEAST if len(ideas) > 1 else QUESTION_LEAST_OF_ONE
        is_foreign = apart < 0 or (apart == 0 and len(lacking) == len(ideas))
        # Where other records have all that this one lacks, it is about something else.
        is_lacked = any(not supports[place].is_found for idea in lacking for place in idea)
        if not named and is_foreign and (is_lacked or not had) and near.similarity >= least:
            return SaidOtherwise(near.key, tuple(forms))
        return None

    def _stood_for(
        self, near: Near, lacking: Sequence[Support], shelf: Shelf
    ) -> list[tuple[str, str]]:
        """Of the lacking words, those for which a word of the record stands, and that word."""
        record = shelf.get(near.key)
        if record is None or not lacking:
            return []
        words = [word for word in dict.fromkeys(record.words) if len(word) > 2 and word.isalpha()]
        if not words:
            return []
        asked = [one.word.text for one in lacking]
        forms = []
        table = self._dense.similarities(asked, words[:_COMPARED_WORDS])
        for text, row in zip(asked, table, strict=True):
            best = max(range(len(row)), key=row.__getitem__)
            if row[best] >= WORD_LEAST:
                forms.append((text, words[best]))
        return forms


def _held(ideas: Sequence[Sequence[int]], had: frozenset[int]) -> int:
    return sum(had.issuperset(idea) for idea in ideas)
