"""Time and randomness that a test decides."""

from __future__ import annotations

import itertools
import random

__all__ = ["FakeClock", "SeededRandomness"]


class FakeClock:
    """Time that passes by a step a reading, and when it is moved."""

    def __init__(self, now_ns: int = 1_750_000_000_000_000_000, *, step_ns: int = 0) -> None:
        self._now_ns = now_ns
        self._step_ns = step_ns
        self._readings = itertools.count()

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._now_ns + self._step_ns * next(self._readings)

    def monotonic(self) -> float:
        """Seconds, from an unspecified start."""
        return self._now_ns / 1e9

    def move(self, seconds: float) -> None:
        """Let time pass, or set the clock back."""
        self._now_ns += round(seconds * 1e9)


class SeededRandomness:
    """The same bytes in every run."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def token(self, size_bytes: int) -> bytes:
        """That many bytes."""
        return self._random.randbytes(size_bytes)
