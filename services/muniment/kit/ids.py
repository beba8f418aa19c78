"""Ids: a prefix and a UUIDv7 in hex (RFC 9562, section 5.7), so that they sort by time."""

from __future__ import annotations

import threading

from muniment.kit.clock import Clock
from muniment.kit.randomness import Randomness

__all__ = ["IdMaker", "made_at_ns"]

_RANDOM_BITS = 74
_HEX_DIGITS = 32


class IdMaker:
    """Makes ids that increase even within a millisecond or when the clock steps back."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        """A new id such as `ep_01a0d50058a877a6b0ee89076eeb1c2d`."""
        milliseconds = self._clock.now_ns() // 1_000_000
        fresh = int.from_bytes(self._randomness.token(10), "big") >> (80 - _RANDOM_BITS)
        with self._lock:
            # Counter method of RFC 9562, section 6.2: the random part counts up on a tie.
            value = max((milliseconds << _RANDOM_BITS) | fresh, self._last + 1)
            self._last = value
        milliseconds, rest = value >> _RANDOM_BITS, value & ((1 << _RANDOM_BITS) - 1)
        rand_a, rand_b = rest >> 62, rest & ((1 << 62) - 1)
        uuid = (milliseconds << 80) | (0x7 << 76) | (rand_a << 64) | (0b10 << 62) | rand_b
        return f"{prefix}_{uuid:032x}"


def made_at_ns(name: str) -> int | None:
    """When the id was made, in nanoseconds since the Unix epoch; None for what is no id of ours."""
    _, _, digits = name.partition("_")
    if len(digits) != _HEX_DIGITS or not set(digits) <= set("0123456789abcdef"):
        return None
    return (int(digits, 16) >> 80) * 1_000_000
