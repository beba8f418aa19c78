"""Connections over HTTP on which a request begins in time, or which are closed.

The guard gives bodies their time. What comes before a request is complete enough to be guarded is
here: uvicorn itself waits without end for a first header, and for the rest of one.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEADER_SECONDS", "TimedProtocol"]

HEADER_SECONDS = 30.0
"""How long a connection may stand, or send of a header, before its request has begun."""


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, with that limit."""

    header_seconds = HEADER_SECONDS

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the first request its time."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Give a request's header its time, from its first byte on."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no more."""
        super().connection_lost(exc)
        self._end_watch()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:  # A request has begun.
            self._end_watch()
        elif self._limit is None:
            self._limit = self.loop.call_later(self.header_seconds, self.transport.close)

    def _end_watch(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
