"""An index that is made anew is filled beside the work of others, and nothing gets in that went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex, Match, Within
from muniment.kit.store import Reader
from muniment.memory.indexing import EpisodesAndPins
from tests.support.bare_memory import BareMemory, a_bare_memory

STAYS, GOES = "proj_0000000000000001", "proj_0000000000000002"

_Read = Callable[[], AbstractContextManager[Reader]]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[BareMemory]:
    with a_bare_memory(tmp_path, sealed=True) as memory:
        for number in range(120):
            memory.commit(STAYS if number % 2 else GOES, f"turn {number} about the port")
        memory.pin(STAYS, "a rule about the port")
        yield memory


@pytest.fixture
def index() -> Iterator[LexicalIndex]:
    index = LexicalIndex(None)
    yield index
    index.close()


@pytest.fixture
def follower(memory: BareMemory, index: LexicalIndex) -> IndexFollower:
    """One that has only begun."""
    follower = IndexFollower(index, EpisodesAndPins(), fill_in_background=False)
    follower.catch_up(memory.store.read)
    return follower


def then(read: _Read, act: Callable[[], object]) -> _Read:
    """Reads as before; after the first time something happens."""
    acts = [act]

    @contextmanager
    def reading() -> Iterator[Reader]:
        with read() as reader:
            yield reader
        if acts:
            acts.pop()()

    return reading


def fill_up(memory: BareMemory, follower: IndexFollower) -> None:
    while follower.fill(memory.store.read):
        pass


def keys(index: LexicalIndex) -> set[str]:
    return set(index.keys())


def test_pins_are_there_at_once_and_episodes_come_newest_first(
    memory: BareMemory, index: LexicalIndex, follower: IndexFollower
) -> None:
    assert [key.partition(":")[0] for key in keys(index)] == ["pin"]
    assert follower.fill(memory.store.read)
    filled = {int(key.partition(":")[2]) for key in keys(index) if key.startswith("episode")}
    assert filled == set(range(index.progress.below, 121))
    fill_up(memory, follower)
    assert keys(index) == keys(memory.index)
    assert index.progress.below == 0


class FilledWhileAsked(LexicalIndex):
    """One that is filled up right after the first search in it."""

    def search(self, terms: Sequence[str], within: Sequence[Within], limit: int) -> list[Match]:
        found = super().search(terms, within, limit)
        self.after_search()
        return found

    def after_search(self) -> None:
        """Is set by the test."""


def test_a_recall_that_came_too_early_says_so(memory: BareMemory) -> None:
    index = FilledWhileAsked(None)
    follower = IndexFollower(index, EpisodesAndPins(), fill_in_background=False)
    follower.catch_up(memory.store.read)
    index.after_search = lambda: fill_up(memory, follower)  # type: ignore[method-assign]
    asked = replace(memory, index=index)
    early, late = asked.recall(STAYS, "turn"), asked.recall(STAYS, "turn")
    index.close()
    nothing, anew = early.notes
    assert not early.hits
    assert "holds 60 episodes" in nothing
    assert "will not help" not in nothing
    assert anew.startswith("the index is being made anew; of the oldest 121 episodes")
    assert late.hits
    assert not late.notes


def test_what_is_purged_while_it_is_read_is_not_brought_back(
    memory: BareMemory, index: LexicalIndex, follower: IndexFollower
) -> None:
    def purge() -> None:
        memory.purge(GOES)
        follower.catch_up(memory.store.read)

    assert follower.fill(then(memory.store.read, purge))
    fill_up(memory, follower)
    assert keys(index) == keys(memory.index)
    assert len(keys(index)) == 61


def test_what_is_committed_while_it_is_read_is_there(
    memory: BareMemory, index: LexicalIndex, follower: IndexFollower
) -> None:
    def commit() -> None:
        memory.commit(STAYS, "one more about the port")
        follower.catch_up(memory.store.read)

    assert follower.fill(then(memory.store.read, commit))
    fill_up(memory, follower)
    assert keys(index) == keys(memory.index)
    assert "episode:121" in keys(index)


def test_it_may_begin_anew_while_it_is_read(
    memory: BareMemory, index: LexicalIndex, follower: IndexFollower
) -> None:
    assert follower.fill(memory.store.read)
    assert follower.fill(then(memory.store.read, lambda: follower.rebuild(memory.store.read)))
    fill_up(memory, follower)
    assert keys(index) == keys(memory.index)
