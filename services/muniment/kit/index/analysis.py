"""From text to terms, for prose, code and CJK alike.

A word of the text becomes the term itself, its parts where it is an identifier or a path
(`getUserName`, `parse_config`, `src/app.py`), its English stem, and for runs of
scripts without blanks each character and each pair. Terms are case-folded and without diacritics.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import Stemmer

__all__ = [
    "ANALYSIS_VERSION",
    "UNSPACED_CHARACTERS",
    "WORD_CHARACTERS",
    "Terms",
    "analyse",
    "is_compound",
    "query_terms",
    "stem",
    "without_marks",
]

ANALYSIS_VERSION = 5
"""Raised when the same text would yield other terms; indexes of another version are rebuilt."""

TERM_LIMIT_CHARACTERS = 64
"""Longer words are cut: nobody asks for the end of a base64 blob."""

REPEATS_LIMIT = 16
"""A term that fills a log counts no more than this often."""

QUERY_LIMIT_TERMS = 32

# Vowel signs and the like, which are part of a word and no letters to Python's `re`.
_SIGNS = "".join(
    chr(point)
    for point in (*range(0x0900, 0x1100), *range(0x1780, 0x1800))
    if unicodedata.category(chr(point)) in ("Mn", "Mc")
)
WORD_CHARACTERS = rf"\w{_SIGNS}"
"""What a word is made of, for a character class."""

# Words with the marks that join identifiers and paths.
_COMPOUND = re.compile(rf"[{WORD_CHARACTERS}]+(?:[./:\-]+[{WORD_CHARACTERS}]+)*")
_PART = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")
# Humps of camelCase: `HTTPServer` is http, server; `utf8Text` is utf8, text. A letter beyond ASCII
# is no boundary: `straße` is one word.
_LOWER = rf"(?:[^\W_A-Z0-9]|[{_SIGNS}])"
_HUMP = re.compile(rf"[A-Z]+(?![^\W_A-Z0-9])[0-9]*|[A-Z]?{_LOWER}+[0-9]*|[0-9]+")
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+")
_JOINER = re.compile(r"[_./:\-]")
UNSPACED_CHARACTERS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
"""What is written without blanks between words, for a character class."""

_CJK = re.compile(rf"[{UNSPACED_CHARACTERS}\uac00-\ud7af]+")

# Accents, the points of Hebrew and the vowels of Arabic, and what joins letters without a look.
_MARKS: dict[int, str | None] = dict.fromkeys(
    (*range(0x300, 0x370), *range(0x591, 0x5C8), *range(0x64B, 0x660), 0x670, 0x200C, 0x200D)
)
# Letters with a stroke and the like, which Unicode does not take apart.
_STROKED = "łl ŁL øo ØO đd ĐD ðd ÐD ħh ĦH ıi ŋn ŊN æae ÆAe œoe ŒOe þth ÞTh"
_MARKS |= {ord(pair[0]): pair[1:] for pair in _STROKED.split()}

# The commonest words of English questions; they find everything and so nothing.
_STOP_WORD_LINES = """
a about after all also am an and any are as at be been before being but by can could d did do
does doing don for from had has have having he her here him his how i if in into is it its just
ll m me more most my no not now of on once only or other our out over own re s same she should so
some such t than that the their them then there these they this those through to too under until
up us ve very was we were what when where which while who whom why will with would you your
"""
_STOP_WORDS = frozenset(_STOP_WORD_LINES.split())

# Without a cache of its own: terms are cached here, and its way of making room costs more.
_stemmer = Stemmer.Stemmer("english", 0)


@dataclass(frozen=True)
class Terms:
    """The terms of a text, in no order, with how often it has each."""

    exact: dict[str, int]
    stems: dict[str, int]
    """Of those that have a stem."""
    stemless: list[str]
    """Identifiers and paths as a whole, and pieces of CJK runs."""


def stem(term: str) -> str:
    """The English stem of a term (Snowball); other scripts come back as they are."""
    return str(_stemmer.stemWord(term))


def is_compound(term: str) -> bool:
    """Whether a term is an identifier or path as a whole, which has no stem."""
    return _JOINER.search(term) is not None


def analyse(text: str) -> Terms:
    """All terms of a text that is to be found by them."""
    exact: dict[str, int] = {}
    stems: dict[str, int] = {}
    stemless: dict[str, None] = {}
    for compound, count in Counter(_COMPOUND.findall(without_marks(text))).items():
        for term, term_stem in _expand(compound):
            exact[term] = exact.get(term, 0) + count
            if term_stem is None:
                stemless[term] = None
            else:
                stems[term_stem] = stems.get(term_stem, 0) + count
    return Terms(_capped(exact), _capped(stems), list(stemless))


def query_terms(text: str) -> list[str]:
    """The terms to search for, in order of appearance, without stop words.

    A query of stop words alone keeps them.
    """
    found: dict[str, None] = {}
    for compound in _COMPOUND.findall(without_marks(text)):
        expanded = [term for term, _ in _expand(compound)]
        # Pairs say more than their characters, which would only dilute them.
        pairs = [term for term in expanded if len(term) > 1]
        found.update(dict.fromkeys(pairs or expanded))
    telling = [term for term in found if term not in _STOP_WORDS]
    return (telling or list(found))[:QUERY_LIMIT_TERMS]


def without_marks(text: str) -> str:
    """The text without diacritics, and with one form for letters that have several."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", decomposed.translate(_MARKS))


def _expand(compound: str) -> tuple[tuple[str, str | None], ...]:
    """A compound's terms, each with its stem where it is a plain word."""
    # Blobs do not come twice, and would stay in memory as the cache's keys.
    short = len(compound) <= 4 * TERM_LIMIT_CHARACTERS
    return _terms_of(compound) if short else _terms_of.__wrapped__(compound)


@lru_cache(maxsize=1 << 16)
def _terms_of(compound: str) -> tuple[tuple[str, str | None], ...]:
    if _PLAIN_WORD.fullmatch(compound):
        folded = _fold(compound)
        return ((folded, stem(folded)),)
    terms: dict[str, str | None] = {}
    parts = _PART.findall(compound)
    for part in parts:
        for run in _CJK.findall(part):
            terms.update(dict.fromkeys(run))
            terms.update(dict.fromkeys(a + b for a, b in pairwise(run)))
        rest = _CJK.sub(" ", part).split()
        for word in rest:
            for piece in (word, *_humps(word)):
                folded = _fold(piece)
                terms[folded] = stem(folded)
    if len(parts) > 1:
        terms.setdefault(_fold(compound))
    return tuple(terms.items())


def _humps(word: str) -> list[str]:
    """The parts of an identifier in camelCase; none of a plain word, a digest or a blob."""
    humps = _HUMP.findall(word)
    is_noise = len(word) > 16 and len(word) < 3 * len(humps)
    return [] if len(humps) < 2 or is_noise else humps


def _fold(term: str) -> str:
    return term.casefold()[:TERM_LIMIT_CHARACTERS]


def _capped(counts: dict[str, int]) -> dict[str, int]:
    if max(counts.values(), default=0) <= REPEATS_LIMIT:
        return counts
    return {term: min(count, REPEATS_LIMIT) for term, count in counts.items()}
