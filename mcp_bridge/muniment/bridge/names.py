"""Spellings of tool names: the reference's, with dots, and the safe one, without.

Some hosts reject dots, so a list shows one spelling or the other; a call may use any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["near_names", "safe_name"]

_NOT_SAFE = re.compile(r"[^a-z0-9]+")


def safe_name(name: str) -> str:
    """The name in lower case with single underscores: `memory.recall` is `memory_recall`."""
    return _NOT_SAFE.sub("_", name.lower()).strip("_")


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that look most like it, best first; of two of a safe name the earlier."""
    by_safe: dict[str, str] = {}
    for one in known:
        by_safe.setdefault(safe_name(one), one)
    return [by_safe[one] for one in get_close_matches(safe_name(name), by_safe, n=3, cutoff=0.4)]
