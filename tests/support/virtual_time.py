"""An event loop whose time passes only while nothing else is left to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["at", "run_in_virtual_time"]

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Instead of waiting for time to pass, lets it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("everybody waits, and nobody will ever be woken")
            self.now += max(0.0, timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run it on a loop of its own that begins at time 0.

    Raises:
        AssertionError: It waits for what cannot happen any more.
    """
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


async def at(moment: float) -> None:
    """Wait for that moment of the loop's time."""
    loop = asyncio.get_running_loop()
    come = loop.create_future()
    timer = loop.call_at(moment, come.set_result, None)
    try:
        await come
    finally:
        timer.cancel()
