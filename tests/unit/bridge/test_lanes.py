"""Lanes against a model: programs of calls, in virtual time, with every start foretold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.bridge.lanes import Lane, Resource
from tests.support.virtual_time import at, run_in_virtual_time

EPISODES, PINS = Resource.EPISODES, Resource.PINS
LANES = 3

# A power of two, so that sums of moments are exact.
TICK = 1 / 1024


@dataclass(frozen=True)
class Planned:
    """One call of a program. Times are in units; it touches the data in the middle of its run."""

    number: int
    lane: int
    reads: frozenset[Resource]
    writes: frozenset[Resource]
    arrives: int
    takes: int
    cancelled: float | None

    def must_follow(self, other: Planned) -> bool:
        mine = self.reads | self.writes
        return self.lane == other.lane and bool(other.writes & mine or self.writes & other.reads)


@dataclass
class Fate:
    """What became of a call."""

    began: float | None = None
    ended: float = 0.0
    wrote: bool = False
    seen: dict[Resource, list[int]] = field(default_factory=dict)
    """Per resource that it read: the numbers of its lane's writes that it saw, in order."""


def foretell(program: Sequence[Planned]) -> list[Fate]:
    """What has to become of each call, by the rule as the blueprint words it."""
    fates: list[Fate] = []
    for call in program:
        before = [other for other in program[: call.number] if call.must_follow(other)]
        turn = max([float(call.arrives), *(fates[other.number].ended for other in before)])
        if call.cancelled is not None and call.cancelled < turn:
            fates.append(Fate(ended=call.cancelled))
            continue
        fate = Fate(began=turn, ended=turn + call.takes)
        touches = turn + call.takes / 2
        if call.cancelled is not None and call.cancelled < fate.ended:
            fate.ended = call.cancelled
        if touches <= fate.ended:
            fate.wrote = bool(call.writes)
            fate.seen = {
                resource: [
                    other.number
                    for other in before
                    if resource in other.writes and fates[other.number].wrote
                ]
                for resource in call.reads
            }
        fates.append(fate)
    return fates


def play(program: Sequence[Planned]) -> list[Fate]:
    """What becomes of each call in real lanes."""
    fates = [Fate() for _ in program]
    lanes = [Lane() for _ in range(LANES)]
    data: dict[tuple[int, Resource], list[int]] = {
        (lane, resource): [] for lane in range(LANES) for resource in Resource
    }

    async def run(call: Planned) -> None:
        loop, fate = asyncio.get_running_loop(), fates[call.number]
        ticket = lanes[call.lane].enter(call.reads, call.writes)
        try:
            async with lanes[call.lane].turn(ticket):
                fate.began = loop.time()
                await at(fate.began + call.takes / 2)
                fate.seen = {one: list(data[call.lane, one]) for one in call.reads}
                for one in call.writes:
                    data[call.lane, one].append(call.number)
                fate.wrote = bool(call.writes)
                await at(fate.began + call.takes)
        finally:
            fate.ended = loop.time()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        tasks = []
        for call in program:
            await at(call.arrives)
            task = asyncio.create_task(run(call))
            await asyncio.sleep(0)  # It takes its place in order of arrival.
            if call.cancelled is not None:
                loop.call_at(call.cancelled, task.cancel)
            tasks.append(task)
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    run_in_virtual_time(main())
    return fates


@st.composite
def programs(draw: st.DrawFn) -> list[Planned]:
    resources = st.frozensets(st.sampled_from(Resource))
    program: list[Planned] = []
    arrives = 0
    for number in range(draw(st.integers(1, 14))):
        arrives += draw(st.integers(0, 2))
        after = draw(st.none() | st.integers(0, 12))
        program.append(
            Planned(
                number=number,
                lane=draw(st.integers(0, LANES - 1)),
                reads=draw(resources),
                writes=draw(resources),
                arrives=arrives,
                takes=draw(st.integers(1, 8)) * 2,
                # A moment of its own: who is cancelled as its turn comes has no foretold fate.
                cancelled=None if after is None else arrives + after + (number + 1) * TICK,
            )
        )
    return program


@given(programs())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_call_starts_as_foretold(program: list[Planned]) -> None:
    assert play(program) == foretell(program)


def commit(number: int, **more: Any) -> Planned:
    return _call(number, frozenset(), frozenset({EPISODES}), **more)


def recall(number: int, **more: Any) -> Planned:
    return _call(number, frozenset({EPISODES, PINS}), frozenset(), **more)


def pin(number: int, **more: Any) -> Planned:
    return _call(number, frozenset(), frozenset({PINS}), **more)


def _call(
    number: int,
    reads: frozenset[Resource],
    writes: frozenset[Resource],
    *,
    lane: int = 0,
    takes: int = 2,
    cancelled: float | None = None,
) -> Planned:
    return Planned(number, lane, reads, writes, 0, takes, cancelled)


def test_a_recall_sees_the_commits_before_it_and_none_after() -> None:
    program = [(commit if number % 2 == 0 else recall)(number) for number in range(20)]
    fates = play(program)
    for number in range(1, 20, 2):
        assert fates[number].seen[EPISODES] == list(range(0, number, 2))


def test_reads_run_side_by_side() -> None:
    assert [fate.began for fate in play([recall(0), recall(1), recall(2)])] == [0, 0, 0]


def test_writes_of_different_things_run_side_by_side() -> None:
    fates = play([commit(0, takes=8), pin(1), commit(2), pin(3), recall(4)])
    assert [fate.began for fate in fates] == [0, 0, 8, 2, 10]


def test_lanes_do_not_wait_for_each_other() -> None:
    fates = play([commit(0, takes=100), commit(1, lane=1), recall(2, lane=1)])
    assert [fate.began for fate in fates] == [0, 0, 2]
    assert fates[2].seen[EPISODES] == [1]


def test_who_gives_up_its_place_lets_nobody_pass() -> None:
    program = [
        commit(0, takes=10),
        commit(1, cancelled=1),
        commit(2, cancelled=2),
        recall(3),
    ]
    fates = play(program)
    assert [fate.began for fate in fates] == [0, None, None, 10]
    assert fates[3].seen[EPISODES] == [0]


def test_who_gives_up_its_place_leaves_behind_no_wait_without_a_conflict() -> None:
    both = _call(1, frozenset({PINS}), frozenset({EPISODES}), cancelled=1)
    fates = play([pin(0, takes=10), both, commit(2)])
    assert [fate.began for fate in fates] == [0, None, 1]


def test_a_call_that_never_started_is_left_out() -> None:
    async def main() -> None:
        lane = Lane()
        never = lane.enter(writes=[EPISODES])
        after = lane.enter(reads=[EPISODES])
        lane.leave(never)
        async with lane.turn(after):
            assert after.begun

    run_in_virtual_time(main())


def test_a_call_that_fails_ends_its_turn() -> None:
    async def main() -> None:
        lane = Lane()
        first, second = lane.enter(writes=[PINS]), lane.enter(writes=[PINS])
        with suppress(ValueError):
            async with lane.turn(first):
                raise ValueError
        async with lane.turn(second):
            assert first.ended.is_set()

    run_in_virtual_time(main())


def test_a_long_queue_costs_its_calls_no_more() -> None:
    """Counted in what a call holds: with thousands waiting, each still waits for a few."""
    lane = Lane()
    tickets = []
    for _ in range(2000):
        tickets.append(lane.enter(writes=[EPISODES]))
        tickets.append(lane.enter(reads=[EPISODES, PINS]))
    assert max(len(ticket.earlier) for ticket in tickets) <= 2


def test_what_has_ended_is_forgotten() -> None:
    async def main() -> None:
        lane = Lane()
        for _ in range(3):
            async with lane.turn(lane.enter(writes=[EPISODES])):
                pass
            async with lane.turn(lane.enter(reads=[EPISODES])):
                pass
        assert not lane.enter(reads=[PINS], writes=[EPISODES]).earlier
        lane = Lane()
        first, second = lane.enter(writes=[PINS]), lane.enter(writes=[PINS])
        async with lane.turn(first):
            assert second.earlier
        async with lane.turn(second):
            assert not second.earlier

    run_in_virtual_time(main())
