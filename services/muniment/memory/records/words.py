"""The curated words of `words.toml`: function words, what denies, and words that say little."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from muniment.kit.index.analysis import without_marks

__all__ = [
    "DENYING",
    "LIGHT",
    "asking_words",
    "denying_words",
    "folded",
    "function_words",
    "irregular_forms",
    "is_tiny",
    "language_of",
    "light_words",
    "request_words",
]

_ENGLISH = "en"
_TINY_LETTERS = 2


def folded(text: str) -> str:
    """As words are compared: without case and diacritics."""
    return without_marks(text).casefold()


_TEXTS: dict[str, dict[str, str]] = tomllib.loads(
    files(__package__).joinpath("words.toml").read_text(encoding="utf-8")
)
_TABLES = {
    table: {language: frozenset(folded(words).split()) for language, words in texts.items()}
    for table, texts in _TEXTS.items()
}
_FORMS = {
    word: group.split() for group in _TEXTS["forms"]["en"].splitlines() for word in group.split()
}
_FUNCTION = _TABLES["function"]

_SHARED = _TABLES["shared"][_ENGLISH]

DENYING = _TABLES["negation"]
"""By language: the words that deny."""

LIGHT = _TABLES["light"]
"""By language: words that never keep a record back."""


def language_of(words: Iterable[str], *, has_accents: bool = False) -> str:
    """The language of most of the function words; English where several have as many.

    English has no accents, so where there are some every word of another language tells.
    """
    told: Counter[str] = Counter()
    for word in set(words):
        for language, known in _FUNCTION.items():
            is_own = word in known or word in DENYING.get(language, ())
            # `car` is French, and `die` German, only among others of their kind.
            if is_own and (has_accents or language == _ENGLISH or word not in _SHARED):
                told[language] += 1
    if not told:
        return _ENGLISH
    return max(_FUNCTION, key=lambda one: (told[one], (one == _ENGLISH) != has_accents))


@cache
def function_words(language: str) -> frozenset[str]:
    """Those of the language, and of all that share no letters with it."""
    own = _FUNCTION.get(language, frozenset())
    foreign = (known for known in _FUNCTION.values() if not _latin(known))
    return own.union(*foreign)


@cache
def denying_words(language: str) -> frozenset[str]:
    """Those of the language, and of all that share no letters with it."""
    own = DENYING.get(language, frozenset())
    return own.union(*(known for known in DENYING.values() if not _latin(known)))


@cache
def light_words(language: str) -> frozenset[str]:
    """Those of the language, and of all that share no letters with it."""
    own = LIGHT.get(language, frozenset())
    return own.union(*(known for known in LIGHT.values() if not _latin(known)))


def asking_words(language: str) -> frozenset[str]:
    """Words after which the language's verbs stand: who, where, when, how."""
    return _TABLES["asking"].get(language, frozenset())


@cache
def request_words() -> frozenset[str]:
    """Function words that say that something is asked for, or how much of it; of all languages."""
    return frozenset().union(*_TABLES["request"].values())


def is_tiny(word: str) -> bool:
    """Whether it is an article, a preposition or the like, which nobody counts as a word."""
    is_short = len(word) <= _TINY_LETTERS and word.isascii() and word.isalpha()
    return is_short or word in _TABLES["tiny"][_ENGLISH]


def irregular_forms(word: str) -> list[str]:
    """The other forms of an English word that no stem leads to: `wrote` has `write`, `written`."""
    return [form for form in _FORMS.get(word, ()) if form != word]


def _latin(words: frozenset[str]) -> bool:
    return any(word.isascii() for word in words)
