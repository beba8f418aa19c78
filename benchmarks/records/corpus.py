"""The same made-up records and calls for everybody. Standard library only: peers read it too."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

__all__ = ["CALLS", "Corpus"]

CALLS = ("remember", "update", "recall", "search word", "search question", "list", "forget")
"""What is measured, in this order."""

_WORDS = 12_000
_CATEGORIES = 20
_SYLLABLES = ("ba", "co", "di", "fe", "gu", "ha", "ji", "ke", "lo", "mu", "na", "po", "ri", "sa")


class Corpus:
    """Records of 25 to 45 words out of a vocabulary that Zipf's law rules."""

    def __init__(self) -> None:
        chance = random.Random(7)
        self._words = [
            "".join(chance.choice(_SYLLABLES) for _ in range(3)) + str(number % 10)
            for number in range(_WORDS)
        ]
        self._weights = [1 / (rank + 3) for rank in range(_WORDS)]

    def record(self, number: int) -> tuple[str, str, dict[str, Any]]:
        """Category, name and body of the record of that number."""
        chance = random.Random(number)
        words = chance.choices(self._words, self._weights, k=chance.randint(25, 45))
        body = {"title": " ".join(words[:5]), "text": " ".join(words[5:])}
        return f"category{number % _CATEGORIES}", f"record{number:07d}", body

    def records(self, first: int, last: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """The records of these numbers."""
        return map(self.record, range(first, last))

    def word(self, number: int) -> str:
        """A rare word that some record has."""
        _, _, body = self.record(number)
        return str(max(body["text"].split(), key=self._words.index))

    def question(self, number: int) -> str:
        """Five words of a record."""
        _, _, body = self.record(number)
        return " ".join(random.Random(number).sample(body["text"].split(), 5))
