"""Figures in what llama-server answers: a count, a time, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["count_in", "count_of", "milliseconds_in"]

_MOST = 2**53
"""Beyond, JSON numbers are not exact."""


def count_of(value: object) -> int | None:
    """A count; None for anything else, and for what no server can have."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        return None
    return value


def count_in(answer: Mapping[str, Any], name: str) -> int:
    """A count of the answer; 0 where there is none."""
    return count_of(answer.get(name)) or 0


def milliseconds_in(answer: Mapping[str, Any], name: str) -> int:
    """One of its timings, rounded; 0 where there is none."""
    timings = answer.get("timings")
    value = timings.get(name) if isinstance(timings, dict) else None
    # JSON of Python's has NaN and infinity, too.
    if not isinstance(value, (int, float)) or not 0 <= value < _MOST:
        return 0
    return round(value)
