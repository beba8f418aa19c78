"""Who is mentioned by many, and by those who are mentioned themselves, ranks high."""

from __future__ import annotations

import numpy as np
import pytest

from muniment.code.graph import GraphArrays, Places
from muniment.code.ranking import Floats, Integers, Ranking
from muniment.v1 import code_pb2

CALLS, IMPORTS = code_pb2.EDGE_KIND_CALLS, code_pb2.EDGE_KIND_IMPORTS
RESOLVED = code_pb2.EDGE_CERTAINTY_RESOLVED
CANDIDATES = code_pb2.EDGE_CERTAINTY_CANDIDATES
NOWHERE: Integers = np.empty(0, np.int64)


def ranking(
    nodes: int,
    *mentions: tuple[int, int],
    kind: int = CALLS,
    certainty: int = RESOLVED,
    parents: dict[int, int] | None = None,
) -> Ranking:
    return mixed(nodes, *((*pair, kind, certainty) for pair in mentions), parents=parents)


def mixed(
    nodes: int,
    *mentions: tuple[int, int, int, int],
    parents: dict[int, int] | None = None,
) -> Ranking:
    sources, targets, kinds, certainties = np.array(mentions, np.int32).reshape(-1, 4).T
    places = Places(["a.py"], [nodes])
    arrays = GraphArrays(places, sources, targets, kinds, certainties, sources)
    above = np.full(nodes, -1, np.int64)
    for member, parent in (parents or {}).items():
        above[member] = parent
    return Ranking(arrays, above, np.ones(nodes))


def ranked(scores: Floats) -> list[int]:
    return [int(node) for node in np.argsort(-scores, kind="stable")]


def test_who_is_called_by_many_is_first() -> None:
    scores = ranking(5, (0, 4), (1, 4), (2, 4), (2, 3)).scores(NOWHERE)
    assert ranked(scores)[:2] == [4, 3]
    assert scores.sum() == pytest.approx(1)


def test_who_is_called_by_the_important_is_before_who_is_called_by_others() -> None:
    scores = ranking(7, (0, 3), (1, 3), (2, 3), (3, 4), (6, 5)).scores(NOWHERE)
    assert scores[4] > scores[5]


def test_a_hundred_calls_are_not_a_hundred_callers() -> None:
    often = [(0, 3)] * 100
    scores = ranking(6, *often, (0, 5), (1, 4), (2, 4), (0, 4)).scores(NOWHERE)
    assert scores[4] > scores[3]


def test_a_guess_says_less_than_what_is_known() -> None:
    scores = mixed(3, (0, 1, CALLS, CANDIDATES), (0, 2, CALLS, RESOLVED)).scores(NOWHERE)
    assert ranked(scores)[0] == 2


def test_an_import_says_less_than_a_call() -> None:
    scores = mixed(3, (0, 1, IMPORTS, RESOLVED), (0, 2, CALLS, RESOLVED)).scores(NOWHERE)
    assert ranked(scores)[0] == 2


def test_what_could_not_be_told_says_nothing() -> None:
    unresolved = code_pb2.EDGE_CERTAINTY_UNRESOLVED
    scores = ranking(3, (0, 1), certainty=unresolved).scores(NOWHERE)
    assert scores == pytest.approx(np.full(3, 1 / 3))


def test_a_member_raises_its_type() -> None:
    scores = ranking(4, (0, 2), parents={2: 1}).scores(NOWHERE)
    assert scores[1] > scores[3]


def test_what_can_be_reached_from_the_focus_rises() -> None:
    # Five callers of 6, and one of 8 by way of 7.
    one = ranking(9, (0, 6), (1, 6), (2, 6), (3, 6), (4, 6), (5, 7), (7, 8))
    assert ranked(one.scores(NOWHERE))[0] == 6
    in_focus = one.scores(np.array([5]))
    assert set(ranked(in_focus)[:3]) == {5, 7, 8}
    assert ranked(in_focus)[3] == 6, "the rest keeps an order of its own"


@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_without_mentions_all_are_alike(nodes: int) -> None:
    scores = ranking(nodes).scores(NOWHERE)
    assert scores == pytest.approx(np.full(nodes, 1 / max(nodes, 1)))


def test_the_same_numbers_give_the_same_bits() -> None:
    chance = np.random.default_rng(7)
    pairs = [(int(one), int(other)) for one, other in chance.integers(0, 200, (2000, 2))]
    first, second = (ranking(200, *pairs).scores(np.array([3, 5])) for _ in range(2))
    assert first.tobytes() == second.tobytes()
