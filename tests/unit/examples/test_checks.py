"""The first session's verdict: each check fails where it should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from examples.first_session.answers import (
    AnswerError,
    Dependent,
    Hit,
    committed,
    dependents,
    recalled,
)
from examples.first_session.checks import (
    Acknowledged,
    Correction,
    came_back,
    correction_surfaced,
    exactly_once,
    pins_survived,
    rank_of,
    reached,
)

TURNS = [Acknowledged(2, "ep_a", "one"), Acknowledged(3, "ep_b", "二")]
STORED = [{"episode_id": turn.episode_id, "content_sha256": turn.sha256} for turn in TURNS]

HIT = Hit(
    kind="episode",
    hit_id="ep_old",
    text="the port is 8080",
    reasons=("has 1 of 1 terms: port",),
    role="user",
    tool_name=None,
    seq=1,
    superseded_by=None,
    current_value=None,
)
RIGHT = replace(HIT, hit_id="ep_new", text="the port is 9090")
MARKED = replace(HIT, superseded_by="ep_new", current_value="the port is 9090")
CORRECTION = Correction(5, "ep_old", "ep_new", "the port is 9090")


def test_exactly_once_holds_for_the_same_rows_in_any_order() -> None:
    assert exactly_once(TURNS, STORED[::-1]).holds


@pytest.mark.parametrize(
    ("stored", "detail"),
    [
        (STORED[:1], "missing: steps 3"),
        ([*STORED, {**STORED[1], "episode_id": "ep_c"}], "1 rows too many"),
        ([*STORED, STORED[0]], "1 rows too many"),
        ([STORED[0], {**STORED[1], "content_sha256": "00"}], "other bytes: steps 3"),
    ],
)
def test_exactly_once_sees_what_is_wrong(stored: list[dict[str, str]], detail: str) -> None:
    check = exactly_once(TURNS, stored)
    assert (check.holds, check.detail) == (False, detail)


def test_exactly_once_sees_an_id_that_was_given_twice() -> None:
    assert not exactly_once([TURNS[0], replace(TURNS[0], step=4)], STORED[:1]).holds


def test_exactly_once_does_not_hold_for_nothing() -> None:
    assert not exactly_once([], []).holds


def test_a_killed_service_is_back_under_another_pid() -> None:
    assert came_back("memory", 10, {"pid": 11}, 900.0).holds


@pytest.mark.parametrize(
    ("now", "milliseconds"),
    [(None, 1.0), ({"pid": None}, 1.0), ({"pid": 10}, 1.0), ({"pid": 11}, None)],
)
def test_a_killed_service_that_is_not_back(
    now: dict[str, object] | None, milliseconds: float | None
) -> None:
    assert not came_back("memory", 10, now, milliseconds).holds


def test_pins_survive_word_for_word() -> None:
    assert pins_survived(["never force-push"], "1. never force-push\n").holds
    assert not pins_survived(["never force-push"], "1. do not force-push\n").holds
    assert not pins_survived(["never force-push"], None).holds
    assert not pins_survived([], "").holds


def test_a_correction_surfaces_with_or_without_the_marked_turn() -> None:
    assert correction_surfaced([CORRECTION], [(6, [RIGHT])]).holds
    assert correction_surfaced([CORRECTION], [(6, [MARKED, RIGHT])]).holds
    assert correction_surfaced([CORRECTION], [(4, [HIT]), (6, [RIGHT])]).holds


@pytest.mark.parametrize(
    "hits",
    [
        [],
        [MARKED],
        [RIGHT, HIT],
        [RIGHT, replace(MARKED, superseded_by="ep_other")],
        [RIGHT, replace(MARKED, current_value=None)],
        [RIGHT, replace(MARKED, current_value="the port is 8080")],
    ],
)
def test_a_correction_that_does_not_surface(hits: list[Hit]) -> None:
    assert not correction_surfaced([CORRECTION], [(6, hits)]).holds


def test_only_the_first_three_hits_count() -> None:
    assert rank_of("9090", [HIT, HIT, RIGHT]) == 3
    assert rank_of("9090", [HIT, HIT, HIT, RIGHT]) is None


def test_answers_are_read_as_they_are_promised() -> None:
    entry = {"kind": "pin", "id": "pin_a", "text": "never", "reasons": ["is pinned"]}
    [hit] = recalled({"results": [entry]})
    assert (hit.hit_id, hit.seq, hit.superseded_by) == ("pin_a", None, None)
    with pytest.raises(AnswerError, match="episode_id"):
        committed({"seq": 1})


CALLER = {"qualified_name": "a::f", "file": "a.py", "at_line": 3, "via": "calls", "test": False}
TEST = CALLER | {"qualified_name": "tests::test_f", "file": "tests.py", "test": True}


def test_what_a_change_reaches_holds_with_every_file_and_a_test() -> None:
    found = dependents({"callers": [CALLER, TEST]})
    assert found[0] == Dependent("a::f", "a.py", 3, "calls", False)
    check = reached("f", ["a.py", "tests.py"], found)
    assert (check.holds, check.detail) == (True, "2 in 2 files, 1 of them tests")


def test_what_a_change_reaches_fails_without_a_file_or_a_test() -> None:
    found = dependents({"callers": [CALLER]})
    assert reached("f", ["b.py"], found).detail == "not among it: b.py"
    assert not reached("f", ["a.py"], found).holds
    with pytest.raises(AnswerError):
        dependents({"callers": [{}]})
