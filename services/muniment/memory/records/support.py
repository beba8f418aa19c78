"""What in the index stands for a word of the question: itself, another form of it, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.kit.index.analysis import is_compound, stem
from muniment.kit.index.lexical import LexicalIndex, Within, whole_value
from muniment.memory.records.questions import Question, Weight, Word

__all__ = ["Support", "one_slip_apart", "supports_of"]

_PREFIX_LEAST = 4
_PREFIX_SHARE = 0.7
_ENDING_LIMIT = 4
"""How much longer the word of the records may be than what it shares with the asked one."""
_SPELLING_LEAST = 6
_WORDS_READ = 400
"""Words of the index that are compared with one of the question."""
_FORMS_LIMIT = 8

PIECES_SHARE = 0.6
"""How many of its pairs a record must have of an unspaced run."""

_FACTORS = {Weight.NAME: 1.0, Weight.THING: 1.0, Weight.DEED: 0.6, Weight.LIGHT: 0.25}


@dataclass(frozen=True)
class Support:
    """A word, and the index's terms that stand for it."""

    word: Word
    terms: tuple[str, ...]
    """Any of them will do; none, where nothing stands for it."""
    pieces: tuple[str, ...]
    """Terms that stand for it together, where it has no terms."""
    how: str
    """`prefix` or `spelling`; empty where it was found as it is, or by its stem."""
    documents: int
    """How many records have it, in any of these forms."""
    telling: float
    """How much it tells that a record has it (inverse document frequency)."""
    as_value: int
    """How many records have it as a whole value, such as a speaker."""

    @property
    def is_found(self) -> bool:
        """Whether any record has it."""
        return bool(self.terms or self.pieces)

    @property
    def share(self) -> float:
        """How much it tells, and how much it matters."""
        return self.telling * _FACTORS[self.word.weight]


def supports_of(
    index: LexicalIndex, question: Question, within: Sequence[Within], total: int
) -> list[Support]:
    """What stands for each telling word, in the question's order; `total` records are there."""
    asked = [
        term
        for word in question.words
        for term in (*word.variants, *word.pieces, *map(whole_value, word.variants))
    ]
    sizes = index.lists(asked, within)
    return [_Finding(index, within, total, sizes, word).support() for word in question.words]


class _Finding:
    """Looks for one word."""

    def __init__(
        self,
        index: LexicalIndex,
        within: Sequence[Within],
        total: int,
        sizes: dict[str, int],
        word: Word,
    ) -> None:
        self._index = index
        self._within = within
        self._total = total
        self._sizes = sizes
        self._word = word

    def support(self) -> Support:
        word = self._word
        own = {term: self._sizes[term] for term in word.variants if term in self._sizes}
        if word.begins:
            own |= self._words_from(word.text, len(word.text) + 20)
        if own:
            return self._made(own, "")
        if word.pieces:
            had = [self._sizes[piece] for piece in word.pieces if piece in self._sizes]
            # Of an identifier all parts, of a run most pairs.
            needed = 1.0 if word.variants else PIECES_SHARE
            if len(had) >= needed * len(word.pieces):
                return self._made({}, "", pieces=word.pieces, documents=min(had))
        elif (word.text.isalpha() and word.text.isascii()) or word.inflects:
            for how, look in (("prefix", self._by_prefix), ("spelling", self._by_spelling)):
                found = look()
                if found:
                    return self._made(found, how)
        return self._made({}, "")

    def _made(
        self,
        found: dict[str, int],
        how: str,
        pieces: tuple[str, ...] = (),
        documents: int | None = None,
    ) -> Support:
        size = min(sum(found.values()) if documents is None else documents, self._total)
        # Inverse document frequency, never below zero (BM25+).
        telling = math.log(1 + (self._total - size + 0.5) / (size + 0.5))
        terms = sorted(found, key=lambda term: (-found[term], term))[:_FORMS_LIMIT]
        as_value = max((self._sizes.get(whole_value(term), 0) for term in terms), default=0)
        return Support(self._word, tuple(terms), pieces, how, size, telling, as_value)

    def _by_prefix(self) -> dict[str, int]:
        text = self._word.text
        if self._word.weight is Weight.NAME and not self._word.inflects:
            return {}
        if self._word.inflects:
            shared = max(_PREFIX_LEAST, math.ceil(_PREFIX_SHARE * len(text)))
        else:
            shared = max(_PREFIX_LEAST + 1, len(text))
        if len(text) < max(shared, _PREFIX_LEAST + 1):
            return {}
        return self._words_from(text[:shared], len(text) + _ENDING_LIMIT)

    def _words_from(self, prefix: str, longest: int) -> dict[str, int]:
        found = self._index.lists_from(prefix, self._within, _WORDS_READ)
        return {
            term: size
            for term, size in found.items()
            if len(term) <= longest and not is_compound(term)
        }

    def _by_spelling(self) -> dict[str, int]:
        text = self._word.text
        if len(text) < _SPELLING_LEAST or not text.isalpha():
            return {}
        forms = {text, stem(text)}
        near = self._index.lists_from(text[: len(text) // 2], self._within, _WORDS_READ)
        return {
            term: size
            for term, size in near.items()
            if len(term) >= _SPELLING_LEAST - 1
            and term.isalpha()
            and any(one_slip_apart(form, term) for form in forms)
        }


def one_slip_apart(a: str, b: str) -> bool:
    """Whether one letter was left out, put in, changed, or changed places with the next.

    The restricted edit distance of 1 (Damerau 1964).
    """
    if a == b:
        return False
    if abs(len(a) - len(b)) > 1:
        return False
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return True
    if len(a) == len(b):
        swapped = a[start : start + 2] == b[start : start + 2][::-1]
        return a[start + 1 :] == b[start + 1 :] or (swapped and a[start + 2 :] == b[start + 2 :])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[start + 1 :] == shorter[start:]
