"""Wakes coroutines that wait for the store's next commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

__all__ = ["CommitBell"]


class CommitBell:
    """A follower that takes nothing from the store, and says that there is something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closed = False

    def catch_up(self, read: Callable[[], Any]) -> None:
        """Wake everybody who waits. Called by the store after each commit."""
        with self._lock:
            waiting = list(self._waiting)
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def close(self) -> None:
        """Let everybody who waits go."""
        self._closed = True
        self.catch_up(lambda: None)

    async def rings(self) -> AsyncIterator[None]:
        """Now, and after each commit or several of them, until the bell is closed."""
        event = asyncio.Event()
        place = asyncio.get_running_loop(), event
        with self._lock:
            self._waiting.add(place)
        try:
            while not self._closed:
                yield
                await event.wait()
                # Before anybody looks: what comes later rings again.
                event.clear()
        finally:
            with self._lock:
                self._waiting.discard(place)
