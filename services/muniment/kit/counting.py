"""Token counts without a tokenizer: an estimate, and labelled as one.

The estimate goes by kinds of characters, as byte-pair vocabularies roughly do: a word of Latin
letters costs a token for about 4.2 letters, a run of digits for 3, a run of punctuation for 2,
a CJK character one, other letters one for two. It is a budget's first guess and never `exact`.
"""

from __future__ import annotations

import re

__all__ = ["TOKENIZER", "estimate_tokens"]

TOKENIZER = "estimate-1"

_CJK = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"

# Runs by kind. White space is free but for its own longer runs (indentation, blank lines).
_RUNS = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<space>[ \t\r\n]{2,})"
    rf"|(?P<cjk>[{_CJK}]+)"
    rf"|(?P<marks>[!-/:-@\[-`{{-~]+)|(?P<other>[^\x00-\x7f{_CJK}]+)"
)
_PER_TOKEN = {"word": 4.2, "digits": 3.0, "space": 4.0, "cjk": 1.0, "marks": 2.0, "other": 2.0}


def estimate_tokens(text: str) -> int:
    """Roughly how many tokens a present-day model counts; 0 only for empty text."""
    if not text:
        return 0
    total = 0
    for match in _RUNS.finditer(text):
        per_token = _PER_TOKEN[match.lastgroup or "other"]
        # Rounded up by the run: no token spans two kinds.
        total += -int(-(match.end() - match.start()) // per_token)
    return max(total, 1)
