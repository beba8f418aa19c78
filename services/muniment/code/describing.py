"""What is told of an index: how far it is, and what it holds."""

from __future__ import annotations

from muniment.code.answers import holdings
from muniment.code.freshness import Made, answer, index_state
from muniment.code.trees import LiveTree
from muniment.v1 import code_pb2

__all__ = ["describe"]


def describe(live: LiveTree) -> code_pb2.DescribeIndexResponse:
    """How far the tree's index is, and what it holds. One that was not begun is not."""
    state = live.tree.state()
    if state.indexed_at_ns is None and not state.is_running:
        return code_pb2.DescribeIndexResponse(
            state=index_state(state, is_new=True, is_current=False, is_watched=False)
        )
    answered = answer(live, lambda graph: Made(holdings(graph, live.tree.known()), ()))
    answered.value.state.CopyFrom(answered.state)
    return answered.value
