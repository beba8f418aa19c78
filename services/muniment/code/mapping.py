"""The map of a tree, headed by how old it is, and counted by who counts best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muniment.code.answers import find_focus
from muniment.code.counting import ESTIMATING, TokenCounter
from muniment.code.freshness import Answered, Made, answer, moment_text
from muniment.code.graph import CodeGraph
from muniment.code.limits import BUDGET_LIMIT_TOKENS
from muniment.code.outline import Outline
from muniment.code.paths import shown
from muniment.code.trees import LiveTree
from muniment.kit.errors import InvalidArgumentError, MunimentError

__all__ = ["Map", "MapOrder", "make_map"]


@dataclass(frozen=True)
class MapOrder:
    """What map is wanted."""

    budget: int
    focus_paths: Sequence[str]
    names_only: bool


@dataclass(frozen=True)
class Map:
    """A map, and who counted its tokens."""

    outline: Outline
    counter: TokenCounter
    notes: Sequence[str]


def make_map(live: LiveTree, order: MapOrder, counter: TokenCounter) -> Answered[Map]:
    """The map, as the tree is on the disk.

    Raises:
        InvalidArgumentError: The budget or a focus path is none.
    """
    if not 1 <= order.budget <= BUDGET_LIMIT_TOKENS:
        raise InvalidArgumentError(
            f"is {order.budget}",
            reason="TOKEN_BUDGET_INVALID",
            field="token_budget",
            fix=f"give it 1 to {BUDGET_LIMIT_TOKENS}",
        )

    def make(graph: CodeGraph) -> Made[Map]:
        try:
            return Made(_map(live, graph, order, counter), ())
        except InvalidArgumentError:
            raise
        except MunimentError:
            # The model went away while the map was made.
            return Made(_map(live, graph, order, ESTIMATING), ())

    return answer(live, make)


def _map(live: LiveTree, graph: CodeGraph, order: MapOrder, counter: TokenCounter) -> Map:
    focus = find_focus(live.tree, order.focus_paths)
    outline = live.outliner(graph).outline(
        order.budget,
        counter.count,
        header=_header(live),
        focus=focus.files,
        names_only=order.names_only,
    )
    return Map(outline, counter, focus.notes)


def _header(live: LiveTree) -> str:
    """Says how old the index is; the same for as long as the index is."""
    state = live.tree.state()
    name = shown(live.tree.root.rpartition(b"/")[2])
    said = f"# {name}: {state.files} files, {state.symbols} symbols"
    if state.waiting_files or not state.is_complete:
        said += ", still being read"
    if state.indexed_at_ns is not None:
        said += f"; indexed {moment_text(state.indexed_at_ns)}"
    if state.changed_files:
        said += f", {state.changed_files} files read again since"
    return said
