"""Waiting in tests: for a condition, with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["until"]

T = TypeVar("T")

_POLL_SECONDS = 0.02


def until(condition: Callable[[], T | None], what: str, *, seconds: float = 20.0) -> T:
    """The first true value of the condition.

    Raises:
        AssertionError: There was none within the time; it says what was waited for.
    """
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        pause.wait(_POLL_SECONDS)
    return value
