"""Time as it is handed in."""

from __future__ import annotations

import pytest

from muniment.kit.clock import SystemClock, timestamp
from tests.support.seams import FakeClock


def test_the_system_clock_goes_on() -> None:
    clock = SystemClock()
    assert 1_700_000_000_000_000_000 < clock.now_ns() <= clock.now_ns()
    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.parametrize(
    ("now_ns", "seconds", "nanos"),
    [
        (0, 0, 0),
        (1_750_000_000_123_456_789, 1_750_000_000, 123_456_789),
        (999_999_999, 0, 999_999_999),
        # Before the epoch: nanos still count forwards, as protobuf wants it.
        (-1, -1, 999_999_999),
    ],
)
def test_a_timestamp_is_the_moment_to_the_nanosecond(now_ns: int, seconds: int, nanos: int) -> None:
    made = timestamp(FakeClock(now_ns))
    assert (made.seconds, made.nanos) == (seconds, nanos)
    assert made.ToNanoseconds() == now_ns
