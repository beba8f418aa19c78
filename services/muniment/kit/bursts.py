"""Waiting, in an event loop, for futures that another thread resolves in bursts.

asyncio.wrap_future wakes the loop by a system call for each of them; here one wakes it for all
that were resolved meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Bursts"]

T = TypeVar("T")


class Bursts:
    """Hands the outcomes of other threads' futures to one event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resolved: list[tuple[asyncio.Future[Any], Future[Any]]] = []

    async def outcome(self, future: Future[T]) -> T:
        """The future's result or error. Who stops waiting cancels what has not begun."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(lambda done: self._resolve(loop, waiter, done))
        try:
            return await waiter
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _resolve(
        self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[Any], future: Future[Any]
    ) -> None:
        with self._lock:
            is_first = not self._resolved
            self._resolved.append((waiter, future))
        if is_first and not loop.is_closed():
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            resolved, self._resolved = self._resolved, []
        for waiter, future in resolved:
            if waiter.done():
                continue
            if future.cancelled():
                waiter.cancel()
            elif (error := future.exception()) is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(future.result())
