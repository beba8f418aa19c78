"""Lets many read, or one rearrange what they read from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

__all__ = ["Gate"]


class Gate:
    """Shared by readers; held alone while the map grows or the files change."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._inside = 0
        self._closed = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits to be alone inside, or is."""
        return self._closed

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Pass together with others, once nobody is alone inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others out, and wait for those inside to leave."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._inside == 0)
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()
