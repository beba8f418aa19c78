"""Answers that are never older than the disk without saying so.

Before an answer the whole tree is looked at; or, where it is watched, its files are compared with
the disk, and those that differ are read again. An answer that is made of others too is made anew
after these were compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from concurrent.futures import TimeoutError as PatienceError
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Generic, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.code.graph import CodeGraph
from muniment.code.indexing import RunResult, Tree, TreeState
from muniment.code.limits import COMPARE_LIMIT_FILES, REREAD_LIMIT_FILES
from muniment.code.trees import LiveTree
from muniment.v1 import code_pb2

__all__ = ["Answered", "Made", "answer", "index_state", "moment_text"]

_PATIENCE_SECONDS = 2.0
"""How long a query waits for the look at the whole tree."""
_ROUNDS = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Made(Generic[T]):
    """Something that was made of the graph."""

    value: T
    files: Collection[str]
    """Paths of the files that it is made of; the most telling first, where there is an order."""


@dataclass(frozen=True)
class Answered(Generic[T]):
    """An answer, and how current it is."""

    value: T
    state: code_pb2.IndexState


def answer(live: LiveTree, make: Callable[[CodeGraph], Made[T]]) -> Answered[T]:
    """What `make` makes of the tree as it is on the disk, as far as a short wait allows."""
    tree = live.tree
    is_new = tree.state().indexed_at_ns is None
    is_watched = live.is_current() and not _has_others(tree)
    is_whole = is_watched or _look(tree.look())
    if is_whole:
        live.watch()
    compared = set[str]()
    is_same = True
    if is_watched or not is_whole:
        compared.update(islice(tree.readable(), COMPARE_LIMIT_FILES))
        is_same = _bring_up(tree, compared)
    with tree.graph() as graph:
        made = make(graph)
    # What an answer is made of is known when it is made; most was compared by then.
    for _ in range(_ROUNDS if compared else 0):
        rest = [path for path in made.files if path not in compared][:COMPARE_LIMIT_FILES]
        compared.update(rest)
        if not tree.differing(rest):
            break
        is_same = _bring_up(tree, rest) and is_same
        with tree.graph() as graph:
            made = make(graph)
    state = index_state(
        tree.state(),
        is_new=is_new,
        is_current=is_whole and is_same,
        is_watched=live.is_current(),
    )
    return Answered(made.value, state)


def _has_others(tree: Tree) -> bool:
    """Whether there are files that are not read yet, or might be."""
    # In this order: what a look finds meanwhile waits to be read.
    return tree.has_other_list() or tree.has_new_names() or tree.progress[1] > 0


def _bring_up(tree: Tree, paths: Collection[str]) -> bool:
    """Read those of the files again that the disk describes in another way."""
    differing = tree.differing(paths)
    if len(differing) > REREAD_LIMIT_FILES:
        return _look(tree.look())
    tree.reread(differing)
    return True


def index_state(
    state: TreeState, *, is_new: bool, is_current: bool, is_watched: bool
) -> code_pb2.IndexState:
    """What callers are told with every answer."""
    if is_current:
        freshness = code_pb2.FRESHNESS_CURRENT
    elif is_new:
        freshness = code_pb2.FRESHNESS_NOT_INDEXED
    elif state.waiting_files:
        freshness = code_pb2.FRESHNESS_INDEXING
    else:
        freshness = code_pb2.FRESHNESS_BEHIND
    told = code_pb2.IndexState(
        freshness=freshness,
        note=_note(state, freshness),
        files=state.files,
        waiting_files=state.waiting_files,
        symbols=state.symbols,
        changed_files=state.changed_files,
        is_watched=is_watched,
    )
    if state.indexed_at_ns is not None:
        told.indexed_at.CopyFrom(_timestamp(state.indexed_at_ns))
    return told


def _look(look: Future[RunResult]) -> bool:
    """Whether the look ends soon, and well."""
    try:
        look.result(_PATIENCE_SECONDS)
    except PatienceError:
        return False
    except Exception:
        # What went wrong is told with the tree's state.
        return False
    return True


def _note(state: TreeState, freshness: code_pb2.Freshness.ValueType) -> str:
    if state.indexed_at_ns is None and not state.is_running and not state.failure:
        said = "this tree was not indexed yet"
    elif freshness == code_pb2.FRESHNESS_NOT_INDEXED and not state.failure:
        said = (
            f"this tree was not indexed before; that has begun: {state.files} files are read,"
            f" {state.waiting_files} wait"
        )
    elif freshness == code_pb2.FRESHNESS_INDEXING:
        said = f"{state.waiting_files} files are still to be read"
    elif state.failure:
        said = f"the tree could not be looked at: {state.failure}"
    elif freshness == code_pb2.FRESHNESS_BEHIND and not state.is_running:
        said = "the disk says otherwise, or was not compared yet"
    elif freshness == code_pb2.FRESHNESS_BEHIND:
        said = "the disk is still being compared; ask again in a moment"
    else:
        said = f"indexed {moment_text(state.indexed_at_ns or 0)}"
        if state.changed_files:
            said += f"; {state.changed_files} files were read again since"
    return f"{said}; {state.note}" if state.note else said


def moment_text(moment_ns: int) -> str:
    """The moment, in whole seconds of UTC."""
    moment = datetime.fromtimestamp(moment_ns // 1_000_000_000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _timestamp(moment_ns: int) -> Timestamp:
    seconds, nanos = divmod(moment_ns, 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=nanos)
