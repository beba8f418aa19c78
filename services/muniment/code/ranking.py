"""How load-bearing each symbol is: PageRank over who calls, uses and inherits from whom.

A walker follows mentions from symbol to symbol, and from a member to the type that it belongs to;
from time to time, and where no way leads on, it begins anew at a place drawn by standing. A
symbol's score is the share of time that it spends there. With a focus it mostly begins in the
focus, so that what is reachable from there rises. The same numbers give the same scores, to the
bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from muniment.code.graph import GraphArrays
from muniment.v1 import code_pb2

__all__ = ["Floats", "Integers", "Ranking"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DAMPING = 0.85
_FOCUS_SHARE = 0.9
"""How often the walker begins in the focus, where there is one; else by standing alone, so that
what cannot be reached from the focus keeps an order too."""

_TOLERANCE = 1e-5
_ROUNDS_LIMIT = 100

_KIND_WEIGHTS: dict[int, float] = {
    code_pb2.EDGE_KIND_CALLS: 1.0,
    code_pb2.EDGE_KIND_INHERITS: 2.0,
    code_pb2.EDGE_KIND_IMPLEMENTS: 2.0,
    code_pb2.EDGE_KIND_REFERENCES: 0.7,
    code_pb2.EDGE_KIND_IMPORTS: 0.3,
}
"""An import says less than the use that it is for, and a base is used by all that its heirs do."""

_CERTAINTY_WEIGHTS: dict[int, float] = {
    code_pb2.EDGE_CERTAINTY_RESOLVED: 1.0,
    code_pb2.EDGE_CERTAINTY_CANDIDATES: 0.1,
}

_MEMBER_WEIGHT = 1.0
"""From a member to its type, beside what the member itself arrays."""


class Ranking:
    """Scores of the nodes of one state of a graph.

    Args:
        arrays: Who mentions whom. Their order is the same for the same files, so the sums are too.
        parents: Of each node the one that it is a member of, or -1.
        standing: How much each node matters by itself: where the walker begins.
    """

    def __init__(self, arrays: GraphArrays, parents: Integers, standing: Floats) -> None:
        nodes = len(standing)
        members = np.flatnonzero(parents >= 0)
        sources = np.concatenate([arrays.sources, members]).astype(np.int64)
        targets = np.concatenate([arrays.targets, parents[members]]).astype(np.int64)
        weights = np.concatenate([_weights(arrays), np.full(len(members), _MEMBER_WEIGHT)])
        apart = (sources != targets) & (weights > 0)
        # Each pair once: a hundred calls by one caller are no hundred callers.
        pairs, place = np.unique(targets[apart] * nodes + sources[apart], return_inverse=True)
        sums, times = np.bincount(place, weights[apart]), np.bincount(place)
        strengths = sums / np.sqrt(times)
        targets, self._sources = np.divmod(pairs, max(nodes, 1))
        self._targets, self._starts = np.unique(targets, return_index=True)
        leaving = np.bincount(self._sources, strengths, minlength=nodes)
        self._shares = strengths / leaving[self._sources]
        self._ends = leaving == 0
        self._standing = _normalised(standing)

    def scores(self, focus: Integers) -> Floats:
        """The share of each node; together they are 1. `focus` are nodes, in any order, or none."""
        begin = self._standing
        if len(focus):
            chosen = np.zeros(len(begin))
            chosen[focus] = 1.0
            begin = _FOCUS_SHARE * _normalised(chosen) + (1 - _FOCUS_SHARE) * begin
        scores = begin
        for _ in range(_ROUNDS_LIMIT):
            lost = float(scores[self._ends].sum())
            after = (_DAMPING * lost + 1 - _DAMPING) * begin
            if len(self._targets):
                carried = scores[self._sources] * self._shares
                after[self._targets] += _DAMPING * np.add.reduceat(carried, self._starts)
            change = float(np.abs(after - scores).sum())
            scores = after
            if change < _TOLERANCE:
                break
        return scores


def _weights(arrays: GraphArrays) -> Floats:
    by_kind = _table(code_pb2.EdgeKind.values(), _KIND_WEIGHTS)
    by_certainty = _table(code_pb2.EdgeCertainty.values(), _CERTAINTY_WEIGHTS)
    weights: Floats = by_kind[arrays.kinds] * by_certainty[arrays.certainties]
    return weights


def _table(values: Sequence[int], weights: Mapping[int, float]) -> Floats:
    return np.array([weights.get(value, 0.0) for value in range(max(values) + 1)])


def _normalised(values: Floats) -> Floats:
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), 1 / max(len(values), 1))
