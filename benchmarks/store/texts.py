"""Text to measure with: seeded, and made like the talk of a coding agent.

Words are drawn by a Zipf-Mandelbrot law. Almost half of a text are English function words, some
words are common in every project (`file`, `test`, `error`), the rest are a long tail; a share
belongs to the text's topic; some are identifiers, paths and numbers.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Corpus", "Query"]

_FUNCTION_WORDS_LINES = """
the to a of and in is it that for this on with be as i you not are we have if but was can at or
from so by an then will when which there do one has what all no would they should only how after
"""
_TRADE_WORDS_LINES = """
file test error code function value name type class method return call server client config path
data string list user request response message version key table index query store cache log
commit branch build run start stop check read write update remove change line module import
"""
_SYLLABLES_LINES = """
ba be bo ca ce co da de di do fa fe fi fo ga ge go ha he ho ja jo ka ke ki la le li lo ma me mi mo
na ne ni no pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi vo za ze zo
"""

_FUNCTION_WORDS = _FUNCTION_WORDS_LINES.split()
_TRADE_WORDS = _TRADE_WORDS_LINES.split()
_SYLLABLES = _SYLLABLES_LINES.split()

_TAIL_WORDS = 80_000
_TOPICS = 400
_TOPIC_WORDS = 250
_TOPIC_SHARE = 0.25
_CODE_SHARE = 0.06
_MEDIAN_WORDS = 60
_SPREAD = 0.7
_LEAST_WORDS, _MOST_WORDS = 5, 1500


@dataclass(frozen=True)
class Query:
    """A question about one text, and which text that is."""

    text: str
    about: int


class Corpus:
    """An endless numbered list of texts; the same number is the same text for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        """Make the vocabulary."""
        self._seed = seed
        chance = random.Random(f"{seed} vocabulary")
        tail = _tail_words(chance)
        rest = itertools.zip_longest(_FUNCTION_WORDS[10:], _TRADE_WORDS)
        head = [*_FUNCTION_WORDS[:10], *(word for pair in rest for word in pair if word)]
        self._words = [*head, *tail]
        self._weights = list(
            itertools.accumulate(1 / (rank + 2.7) ** 1.05 for rank in range(len(self._words)))
        )
        self._topics = [chance.sample(tail[200:30_000], _TOPIC_WORDS) for _ in range(_TOPICS)]
        self._topic_weights = list(
            itertools.accumulate(1 / (rank + 1) for rank in range(_TOPIC_WORDS))
        )
        self._silent = frozenset(_FUNCTION_WORDS)

    def text(self, number: int) -> str:
        """The text of that number."""
        return " ".join(self._tokens(number))

    def texts(self, first: int, count: int) -> Iterator[str]:
        """Texts in order."""
        return (self.text(number) for number in range(first, first + count))

    def queries(self, texts: int, count: int) -> list[Query]:
        """Questions, each about one of the first so many texts, in words that it has."""
        chance = random.Random(f"{self._seed} queries {texts}")
        found: list[Query] = []
        while len(found) < count:
            about = chance.randrange(texts)
            telling = [one for one in self._tokens(about) if one not in self._silent]
            if len(telling) < 8:
                continue
            asked = chance.sample(telling, chance.randint(3, 7))
            fill = chance.choices(_FUNCTION_WORDS, k=4)
            found.append(Query(" ".join(["how did", *asked[:2], *fill, *asked[2:]]), about))
        return found

    def digest(self) -> str:
        """What tells that two runs had the same texts: of the first thousand, 16 hex digits."""
        total = hashlib.sha256()
        for text in self.texts(0, 1000):
            total.update(text.encode())
        return total.hexdigest()[:16]

    def _tokens(self, number: int) -> list[str]:
        chance = random.Random(f"{self._seed} {number}")
        size = int(chance.lognormvariate(0, _SPREAD) * _MEDIAN_WORDS)
        size = min(max(size, _LEAST_WORDS), _MOST_WORDS)
        tokens = chance.choices(self._words, cum_weights=self._weights, k=size)
        topic = self._topics[chance.randrange(_TOPICS)]
        of_topic = int(size * _TOPIC_SHARE)
        tokens[:of_topic] = chance.choices(topic, cum_weights=self._topic_weights, k=of_topic)
        for place in range(of_topic, of_topic + int(size * _CODE_SHARE)):
            tokens[place] = self._code(chance, tokens[place], topic)
        chance.shuffle(tokens)
        return tokens

    def _code(self, chance: random.Random, word: str, topic: list[str]) -> str:
        other = chance.choice(topic)
        return chance.choice(
            (
                f"{word}_{other}",
                f"{word}{other.capitalize()}",
                f"src/{other}/{word}.py",
                str(chance.randrange(10_000)),
            )
        )


def _tail_words(chance: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < _TAIL_WORDS:
        words["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 2, 3, 3, 4))))] = None
    return list(words)
