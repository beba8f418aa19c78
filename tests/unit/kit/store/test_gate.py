"""The gate: many together, or one alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from muniment.kit.store.gate import Gate
from tests.waiting import until

SECONDS = 20.0


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_readers_pass_together() -> None:
    gate, both = Gate(), threading.Barrier(2)

    def read() -> None:
        with gate.shared():
            both.wait(SECONDS)

    threads = [started(read) for _ in range(2)]
    for thread in threads:
        thread.join(SECONDS)
    assert not both.broken


def test_who_wants_to_be_alone_waits_for_those_inside_and_goes_before_newcomers() -> None:
    gate, leave, order = Gate(), threading.Event(), list[str]()
    inside = threading.Event()

    def read_long() -> None:
        with gate.shared():
            inside.set()
            leave.wait(SECONDS)
            order.append("first reader leaves")

    def rearrange() -> None:
        with gate.alone():
            order.append("alone")

    def read() -> None:
        with gate.shared():
            order.append("second reader")

    threads = [started(read_long)]
    assert inside.wait(SECONDS)
    threads.append(started(rearrange))
    until(lambda: gate.is_wanted, "somebody wants to be alone")
    threads.append(started(read))
    leave.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["first reader leaves", "alone", "second reader"]
    assert not gate.is_wanted


def test_never_two_alone() -> None:
    gate, inside, most = Gate(), list[int](), list[int]()

    def rearrange(number: int) -> None:
        for _ in range(50):
            with gate.alone():
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [started(partial(rearrange, number)) for number in range(4)]
    for thread in threads:
        thread.join(SECONDS)
    assert set(most) == {1}
    assert len(most) == 200


def test_a_failure_opens_the_gate_again() -> None:
    gate = Gate()
    for enter in (gate.alone, gate.shared, gate.alone):
        with pytest.raises(RuntimeError), enter():
            raise RuntimeError("inside")
    with gate.shared():
        assert not gate.is_wanted
