"""No named fault point of the source goes without a test that dies there."""

from __future__ import annotations

from muniment.kit import faults
from tests.faults import (
    test_code_points,
    test_counts,
    test_fault_points,
    test_purge,
    test_record_points,
    test_slot_points,
    test_store_machine,
    test_swaps,
)
from tests.support.crashes import Crash, dying_at, fault_points

# Each of these dies at every point that it lists, and fails where one was never reached.
VISITED = {
    *test_store_machine.POINTS,
    *test_fault_points.POINTS,
    test_counts.POINT,
    *test_purge.FINISHED,
    *test_purge.UNDONE,
    *test_swaps.SWAP_POINTS,
    *test_swaps.KEY_POINTS,
    test_record_points.REPLY_POINT,
    *test_record_points.GENERATION_POINTS,
    *test_slot_points.POINTS,
    *test_code_points.POINTS,
}


def test_every_point_is_visited_somewhere() -> None:
    assert fault_points() == VISITED


def test_a_point_is_where_one_dies_on_the_visit_that_was_asked_for() -> None:
    passed: list[str] = []

    def go() -> None:
        for point in ("one", "two", "one", "one"):
            faults.reach(point)
            passed.append(point)

    died_at = ""
    with dying_at("one", visit=2):
        try:
            go()
        except Crash as crash:
            died_at = crash.point
    assert (died_at, passed) == ("one", ["one", "two"])
    with dying_at("three"):
        go()
    assert passed == ["one", "two", "one", "two", "one", "one"]
