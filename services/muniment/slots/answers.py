"""What llama-server answers, made fit for use: JSON that is no trap, and figures or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["count_in", "count_of", "milliseconds_in", "parsed"]

_MOST = 2**53
"""Beyond, JSON numbers are not exact."""

_MOST_LEVELS = 64
"""Deepest JSON that is taken: what walks through it later would end somewhere."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def parsed(body: bytes) -> Any:
    """The JSON of an answer.

    Raises:
        ValueError: It is none, too deep, or has in it what is no text; the message says which.
    """
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    if body.count(b"[") + body.count(b"{") > _MOST_LEVELS or _SURROGATE.search(body):
        _look_through(value)
    return value


def _look_through(value: Any) -> None:
    waiting = [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        if isinstance(one, str):
            if not _is_text(one):
                raise ValueError("what is no text")
        elif isinstance(one, dict | list):
            if level > _MOST_LEVELS:
                raise ValueError("JSON of too many levels")
            inner = (*one, *one.values()) if isinstance(one, dict) else one
            waiting += [(each, level + 1) for each in inner if isinstance(each, str | dict | list)]


def _is_text(words: str) -> bool:
    """Whether it can be written: JSON may name half a character."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


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
