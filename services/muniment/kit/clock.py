"""Time, as something handed in. Nothing else in the house reads a clock."""

from __future__ import annotations

import time
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

__all__ = ["Clock", "SystemClock", "timestamp"]


class Clock(Protocol):
    """A source of time that tests can replace."""

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards, from an unspecified start."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that never go backwards, from an unspecified start."""
        return time.monotonic()


def timestamp(clock: Clock) -> Timestamp:
    """The present moment as a protobuf Timestamp (UTC)."""
    seconds, nanos = divmod(clock.now_ns(), 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=nanos)
