"""Waiting in tests: for a condition, with a deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

__all__ = ["eventually", "until"]

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


async def eventually(
    condition: Callable[[], Awaitable[T | None]], what: str, *, seconds: float = 20.0
) -> T:
    """The first true value of the condition.

    Raises:
        AssertionError: There was none within the time; it says what was waited for.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    pause = asyncio.Event()
    while not (value := await condition()):
        assert loop.time() < end, f"not within {seconds:g} s: {what}"
        with suppress(TimeoutError):
            await asyncio.wait_for(pause.wait(), _POLL_SECONDS)
    return value
