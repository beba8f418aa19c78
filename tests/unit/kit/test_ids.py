"""Ids are UUIDv7 that increase, whatever the clock and however many make them."""

from __future__ import annotations

import re
import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kit.clock import SystemClock
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import SystemRandomness
from tests.support.seams import FakeClock, SeededRandomness


class Constant:
    """The same bytes always: the worst that randomness can do."""

    def __init__(self, byte: int) -> None:
        self._byte = byte

    def token(self, size_bytes: int) -> bytes:
        return bytes([self._byte]) * size_bytes


def as_uuid(made: str) -> uuid.UUID:
    return uuid.UUID(made.split("_")[1])


@pytest.mark.parametrize("prefix", ["ep", "pin"])
def test_an_id_is_a_prefix_and_32_hex_digits(prefix: str) -> None:
    made = IdMaker(SystemClock(), SystemRandomness()).new(prefix)
    assert re.fullmatch(rf"{prefix}_[0-9a-f]{{32}}", made)


@given(
    milliseconds=st.integers(0, 2**48 - 2), seed=st.integers(), byte=st.sampled_from((0, 255, None))
)
def test_version_variant_and_time_are_where_rfc_9562_puts_them(
    milliseconds: int, seed: int, byte: int | None
) -> None:
    randomness = SeededRandomness(seed) if byte is None else Constant(byte)
    ids = IdMaker(FakeClock(milliseconds * 1_000_000 + 999_999), randomness)
    first = as_uuid(ids.new("ep"))
    assert first.version == 7
    assert first.variant == uuid.RFC_4122
    assert first.int >> 80 == milliseconds
    second = as_uuid(ids.new("ep"))
    assert (second.version, second.variant) == (7, uuid.RFC_4122)


def test_later_ids_sort_later() -> None:
    clock = FakeClock(step_ns=300_000)
    ids = IdMaker(clock, SeededRandomness())
    made = [ids.new("ep") for _ in range(1000)]
    assert made == sorted(set(made))


@pytest.mark.parametrize("byte", [0, 255])
def test_ids_of_one_millisecond_sort_though_randomness_repeats(byte: int) -> None:
    ids = IdMaker(FakeClock(), Constant(byte))
    made = [ids.new("ep") for _ in range(1000)]
    assert made == sorted(set(made))
    assert {as_uuid(one).version for one in made} == {7}


def test_a_clock_that_steps_back_does_not_disturb_the_order() -> None:
    clock = FakeClock()
    ids = IdMaker(clock, SeededRandomness())
    made = [ids.new("ep")]
    for seconds in (-3600, 0, 1800, -1, 7200):
        clock.move(seconds)
        made.append(ids.new("ep"))
    assert made == sorted(set(made))
    # Once the clock has passed where it was, ids tell the time again.
    assert as_uuid(made[-1]).int >> 80 == clock.now_ns() // 1_000_000


def test_threads_make_no_id_twice() -> None:
    ids = IdMaker(FakeClock(), SeededRandomness())
    made: list[list[str]] = [[] for _ in range(4)]
    barrier = threading.Barrier(len(made))

    def work(mine: list[str]) -> None:
        barrier.wait()
        mine.extend(ids.new("ep") for _ in range(500))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({one for mine in made for one in mine}) == 2000
