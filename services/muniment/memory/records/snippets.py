"""The part of a record around what was found, with the found words in square brackets."""

from __future__ import annotations

import re
from collections.abc import Callable

from muniment.kit.index.analysis import WORD_CHARACTERS
from muniment.memory.records.words import folded

__all__ = ["forges_fence", "snippet"]

_WORDS_SHOWN = 12
_LIMIT_CHARACTERS = 400

_WORD = re.compile(rf"[{WORD_CHARACTERS}\u0300-\u036f]+")
_FENCE = re.compile(r"untrusted\W*memory\W*context", re.IGNORECASE)


def forges_fence(text: str) -> bool:
    """Whether brackets around words could make a fence's marker of the text."""
    return _FENCE.search(folded(text).replace("_", " ")) is not None


def snippet(text: str, is_found: Callable[[str], bool]) -> str:
    """About twelve words of the text, those where most was found; `...` where it was cut."""
    words = [(one.start(), one.end()) for one in _WORD.finditer(text)]
    found = [is_found(text[start:end]) for start, end in words]
    first = _best_window(found)
    last = min(first + _WORDS_SHOWN, len(words))
    start = words[first][0] if first else 0
    end = words[last][0] if last < len(words) else len(text)
    end = min(end, start + _LIMIT_CHARACTERS)
    plain = forges_fence(text)
    parts, at = [], start
    for place in range(first, last):
        word_start, word_end = words[place]
        if found[place] and not plain and word_end <= end:
            parts += [text[at:word_start], "[", text[word_start:word_end], "]"]
            at = word_end
    parts.append(text[at:end])
    shown = "".join(parts)
    before = "..." if start else ""
    return (
        f"{before}{shown.rstrip() if end < len(text) else shown}{'...' if end < len(text) else ''}"
    )


def _best_window(found: list[bool]) -> int:
    """Where the window of most found words begins, with a few words before the first of them."""
    if not any(found):
        return 0
    hits = [place for place, one in enumerate(found) if one]
    best = max(hits, key=lambda place: (sum(found[place : place + _WORDS_SHOWN]), -place))
    spare = _WORDS_SHOWN - 1 - max(hit - best for hit in hits if 0 <= hit - best < _WORDS_SHOWN)
    return max(0, best - min(spare, _WORDS_SHOWN // 2))
