"""The estimate that was labelled `estimate-1`: what the present one is measured beside.

It needs no vocabulary, and goes by kinds of characters: a word of Latin letters costs a token for
about 4.2 letters, a run of digits for 3, a run of punctuation for 2, a CJK character one, other
letters one for two.
"""

from __future__ import annotations

import re
import string
from collections import Counter

__all__ = ["estimate_by_class"]

# Kinds of ASCII characters: which, least length of a run that counts, and characters per token.
# White space is free but for its own longer runs (indentation, blank lines).
_KINDS = (
    (string.ascii_letters, 1, 4.2),
    (string.digits, 1, 3.0),
    (" \t\r\n", 2, 4.0),
    (string.punctuation, 1, 2.0),
)
_RUNS = tuple(
    (bytes(ord("x") if chr(byte) in kind else ord(" ") for byte in range(256)), least, per_token)
    for kind, least, per_token in _KINDS
)
_CJK = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_OTHER_RUNS = re.compile(rf"(?P<cjk>[{_CJK}]+)|(?P<other>[^\x00-\x7f{_CJK}]+)")
_PER_OTHER_TOKEN = {"cjk": 1.0, "other": 2.0}


def estimate_by_class(text: str) -> int:
    """Roughly how many tokens a present-day model counts; 0 only for empty text."""
    if not text:
        return 0
    total = 0
    encoded = text.encode(errors="surrogatepass")
    for kind, least, per_token in _RUNS:
        # Counted by length: a text has many runs and few lengths.
        for length, count in Counter(map(len, encoded.translate(kind).split())).items():
            if length >= least:
                total += count * _tokens(length, per_token)
    if not text.isascii():
        for match in _OTHER_RUNS.finditer(text):
            per_token = _PER_OTHER_TOKEN[match.lastgroup or "other"]
            total += _tokens(match.end() - match.start(), per_token)
    return max(total, 1)


def _tokens(length: int, per_token: float) -> int:
    # Rounded up by the run: no token spans two kinds.
    return -int(-length // per_token)
