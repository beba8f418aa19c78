"""The map of a tree: what is most load-bearing, file by file, within a budget of tokens.

What stands first depends on the graph and the focus alone, never on the budget, so a smaller
map is a prefix of a larger one. Symbols of a file that matter about alike, a handful at most, make
a block: the file's path, and indented their signatures in the order of their places, below those
of the types that they are members of. Blocks stand in the order of what they say for the room they
take; what else there is to say of a file comes later, under its path again, when other files have
had their turn. Tests, migrations, others' and generated code stand behind the program, constants
and fields behind what has behaviour; imports are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from muniment.code.fitting import Count, fit
from muniment.code.graph import CodeGraph
from muniment.code.map_lines import MapLines
from muniment.code.map_nodes import MapNodes
from muniment.code.ranking import Floats, Integers, Ranking
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.printable import printable

__all__ = ["Outline", "Outliner"]

_BLOCK_SYMBOLS = 6
"""Most symbols of a file that stand together, so that no file swallows the budget."""

_ALIKE = 0.1
"""What has less than so much of the worth of its file's best symbol waits for a later block; and
so on from there."""

_LEVELS = 12

_FOCUSES_KEPT = 8

_DAMPING = 0.5
"""Worth grows with the root of a score: what is called a hundred times as often is not a hundred
times as good to know."""


@dataclass(frozen=True)
class Outline:
    """A map."""

    map: str
    tokens_used: int
    """Of the whole text."""
    shown: int
    """Symbols in it."""


class Outliner:
    """Makes maps of a graph; what depends on neither focus nor budget is kept while it stays."""

    def __init__(self, graph: CodeGraph) -> None:
        self._graph = graph
        self._state = _State(graph)

    def outline(
        self,
        budget: int,
        count: Count,
        *,
        header: str,
        focus: Collection[str] = (),
        names_only: bool = False,
    ) -> Outline:
        """The map within so many tokens, headed by a line of the caller's.

        Args:
            budget: Most tokens of the whole text.
            count: Counts tokens of texts.
            header: Says how old the map is. It may not depend on the budget.
            focus: Paths of files; what can be reached from them rises. Others are passed over.
            names_only: Qualified names, as queries take them, instead of paths and signatures.

        Raises:
            InvalidArgumentError: Not even the first line fits.
        """
        if self._graph.arrays() is not self._state.arrays:
            self._state = _State(self._graph)
        lines = MapLines(self._graph, self._state.nodes, names_only=names_only)
        body = lines.of(self._state.blocks(frozenset(focus)))
        # A header alone is no map, so it is one piece with the line behind it.
        first = "\n".join([printable(header), *islice(body, 1)])
        fitted = fit(chain([first], body), budget, count)
        if not fitted.lines:
            raise InvalidArgumentError(
                "is too small for a single line of the map",
                reason="TOKEN_BUDGET_TOO_SMALL",
                field="token_budget",
                fix=f"give it {fitted.next_tokens} at least",
            )
        return Outline(fitted.text, fitted.tokens, lines.shown(fitted.lines))


class _State:
    """What a graph says while nothing changes in it."""

    def __init__(self, graph: CodeGraph) -> None:
        self.arrays = graph.arrays()
        self.nodes = MapNodes.of(graph, self.arrays.places)
        self._ranking = Ranking(self.arrays, self.nodes.parents, self.nodes.standing())
        self._blocks = dict[frozenset[str], _Blocks]()

    def blocks(self, focus: frozenset[str]) -> _Blocks:
        """The blocks of the whole tree; those of the last few focuses are kept."""
        if focus not in self._blocks:
            while len(self._blocks) >= _FOCUSES_KEPT:
                del self._blocks[next(iter(self._blocks))]
            chosen = self.nodes.in_files(focus)
            worth = self._ranking.scores(chosen) ** _DAMPING * self.nodes.weights(chosen)
            self._blocks[focus] = _Blocks.of(self.nodes.files, worth)
        return self._blocks[focus]


@dataclass(frozen=True)
class _Blocks:
    """Nodes of one file each that are shown together; the most telling blocks come first."""

    nodes: Integers
    """In blocks by the order of their places."""
    starts: Integers
    ends: Integers
    ranked: Integers

    @classmethod
    def of(cls, files: Integers, worth: Floats) -> _Blocks:
        """Blocks of the nodes that have any worth; nodes are numbered by file and place."""
        nodes = np.lexsort((-worth, files))
        nodes = nodes[worth[nodes] > 0]
        starts = _block_starts(files[nodes], worth[nodes])
        lengths = np.diff(starts, append=len(nodes))
        if not len(nodes):
            return cls(nodes, starts, starts, starts)
        # The path takes a line too; and a file's second block counts half, its third a third, as
        # d'Hondt gives out seats, so that a file has its share of the map and no more.
        telling = np.add.reduceat(worth[nodes], starts) / (lengths + 1)
        telling /= _since_run_start(files[nodes][starts]) + 1
        of_block = np.repeat(np.arange(len(starts)), lengths)
        return cls(
            nodes=nodes[np.lexsort((nodes, of_block))],
            starts=starts,
            ends=starts + lengths,
            ranked=np.argsort(-telling, kind="stable"),
        )

    def __iter__(self) -> Iterator[Integers]:
        for block in self.ranked:
            yield self.nodes[self.starts[block] : self.ends[block]]


def _block_starts(files: Integers, worth: Floats) -> Integers:
    """Where blocks begin among nodes that are sorted by file, the worthiest first."""
    if not len(files):
        return np.empty(0, dtype=np.int64)
    best = worth[np.arange(len(files)) - _since_run_start(files)]
    levels = np.minimum(np.log(worth / best) / np.log(_ALIKE), _LEVELS).astype(np.int64)
    within = _since_run_start(files * (_LEVELS + 1) + levels)
    return np.flatnonzero(within % _BLOCK_SYMBOLS == 0)


def _since_run_start(values: Integers) -> Integers:
    """How many equal values stand directly before each."""
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    return np.arange(len(values)) - np.repeat(starts, np.diff(starts, append=len(values)))
