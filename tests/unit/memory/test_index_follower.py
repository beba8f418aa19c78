"""The index and its store part ways and come together: behind, ahead, foreign, damaged, in between.

Whatever happened, in the end it has and answers what an index does that is made anew.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.ids import IdMaker
from muniment.kit.index import following
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import Document, LexicalIndex, Progress
from muniment.kit.store import Reader, Store, StoreOptions, pack
from muniment.kit.store.folders import NEW_LIFE
from muniment.memory.indexing import EpisodesAndPins
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.store_checks import answer, demand_same_index
from tests.support.store_model import CONTEXT, SCHEMA, Hands, Step
from tests.support.stores import QuickDisk, Stepped, protection
from tests.waiting import until

SECONDS = 20.0
QUERIES = ("harbour", "lantern", "number 3", "rule")

_Read = Callable[[], AbstractContextManager[Reader]]


class World:
    """A store with an index beside it, which can be closed and opened apart."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.path = folder / "index" / "lexical.sqlite3"
        self.options = options
        self.hands = Hands(FakeClock(step_ns=1000), IdMaker(FakeClock(), SeededRandomness()))
        self.opened = 0
        self.open()

    def open(self, *, with_index: bool = True) -> None:
        """Open the store, and the index if it is to follow."""
        self.opened += 1
        self.stepped = Stepped(
            self.folder / "store",
            schema=SCHEMA,
            randomness=SeededRandomness(self.opened),
            **self.options,
        )
        if with_index:
            self.index = LexicalIndex(self.path)
            self.follower = IndexFollower(self.index, EpisodesAndPins(), fill_in_background=False)
            self.stepped.store.follow(self.follower)

    def close(self) -> None:
        """Let go of both, as a killed process does."""
        self.stepped.die()
        self.index.close()

    @property
    def read(self) -> _Read:
        """The store's reading."""
        return self.stepped.store.read

    def commit(self, count: int, words: str = "harbour") -> None:
        """Commit so many episodes, one batch."""
        steps = [Step("episode", value=f"{words} number {number}") for number in range(count)]
        self.stepped.run(lambda writer: self.hands.do(writer, steps))

    def pin(self, rule: str) -> None:
        """Pin the rule."""
        self.stepped.run(lambda writer: self.hands.do(writer, [Step("pin", value=rule)]))

    def unpin(self, rule: str) -> None:
        """Take the rule back."""
        self.stepped.run(lambda writer: self.hands.do(writer, [Step("unpin", value=rule)]))

    def fill(self) -> None:
        """Index all that waits."""
        while self.follower.fill(self.read):
            pass

    def demand_same(self) -> None:
        """Fail where the index is not as one that is made anew."""
        self.fill()
        demand_same_index(self.stepped.store, self.index, CONTEXT, QUERIES)

    def found(self, query: str) -> set[int]:
        """The places of the episodes that a recall finds."""
        with self.read() as reader:
            return {hit.episode.seq for hit in answer(reader, self.index, CONTEXT, query).hits}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.commit(5)
    made.pin("a rule about the harbour")
    made.fill()
    yield made
    made.close()


@contextmanager
def never_anew() -> Iterator[None]:
    """Fail where an index is made anew."""

    def refuse(self: object) -> None:
        raise AssertionError("the index is made anew")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LexicalIndex, "reset", refuse)
        yield


def test_it_is_in_step_before_the_answer(world: World) -> None:
    future = world.stepped.store.write(
        lambda writer: world.hands.do(writer, [Step("episode", value="lantern")])
    )
    world.stepped.loop.commit_batch()
    assert not world.found("lantern")
    world.stepped.loop.follow_batch()
    assert future.done()
    assert world.found("lantern") == {6}
    world.demand_same()


def test_a_rule_that_is_taken_back_leaves_no_trace_in_the_weights(world: World) -> None:
    for pinned, taken_back in (("lantern", "harbour"), ("harbour", "lantern")):
        with never_anew():
            world.pin(f"a rule about the {pinned}")
            world.unpin(f"a rule about the {taken_back}")
        world.demand_same()


def test_one_that_is_far_behind_begins_anew_and_says_what_it_lacks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_FROM_FEED_CHANGES", 10)
    world.close()
    world.open(with_index=False)
    world.commit(20, "lantern")
    world.stepped.die()
    world.open()
    assert world.index.progress == Progress(
        world.stepped.store.position, world.stepped.store.incarnation, 26
    )
    with world.read() as reader:
        response = answer(reader, world.index, CONTEXT, "lantern")
        assert not response.hits
        assert any("25" in note for note in response.notes)
        assert answer(reader, world.index, CONTEXT, "rule").hits
    world.demand_same()


def test_a_batch_larger_than_that_is_followed_from_the_feed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_FROM_FEED_CHANGES", 7)
    portions: list[int] = []
    apply = LexicalIndex.apply

    def noted(index: LexicalIndex, documents: Iterable[Document], progress: Progress) -> None:
        portions.append(progress.position)
        apply(index, documents, progress)

    monkeypatch.setattr(LexicalIndex, "apply", noted)
    begun = world.index.progress.position
    with never_anew():
        world.commit(50, "lantern")
    assert portions == [*range(begun + 7, begun + 50, 7), begun + 50]
    assert world.index.progress.position == world.stepped.store.position
    assert len(list(world.index.keys())) == 56


def test_one_whose_changes_were_dropped_begins_anew(tmp_path: Path) -> None:
    world = World(tmp_path, retention_changes=10)
    world.commit(3)
    world.close()
    world.open(with_index=False)
    for _ in range(30):
        world.commit(1, "lantern")
    world.stepped.die()
    world.open()
    assert world.index.progress.below == 34
    world.demand_same()
    world.close()


def test_one_of_another_life_of_the_store_begins_anew(world: World) -> None:
    copy = world.folder / "copy.mdb"
    shutil.copyfile(world.folder / "store" / "data.mdb", copy)
    world.commit(4, "lantern")
    world.close()
    shutil.copyfile(copy, world.folder / "store" / "data.mdb")
    (world.folder / "store" / NEW_LIFE).touch()
    world.open()
    assert world.index.progress.below == 6
    assert not world.found("lantern")
    world.demand_same()
    # As many changes as the index had seen of the other life, and yet others.
    world.close()
    world.open(with_index=False)
    world.commit(4, "quorum")
    world.stepped.die()
    world.open()
    world.commit(1, "lantern")
    world.demand_same()


def test_one_whose_folder_is_gone_begins_anew(world: World) -> None:
    world.close()
    shutil.rmtree(world.path.parent)
    world.open()
    assert world.index.progress.below == 6
    world.demand_same()


HARM: dict[str, Callable[[Path], object]] = {
    "rubbish": lambda path: path.write_bytes(b"rubbish" * 2000),
    "emptied": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("harm", HARM)
def test_one_that_is_damaged_under_way_is_made_anew_with_the_next_change(
    world: World, harm: str
) -> None:
    # Whoever reads next opens the file again.
    world.index.close()
    HARM[harm](world.path)
    with world.read() as reader, pytest.raises(UnavailableError) as caught:
        answer(reader, world.index, CONTEXT, "harbour")
    assert caught.value.reason == "INDEX_DAMAGED"
    world.commit(1, "lantern")
    world.demand_same()


@pytest.mark.parametrize("harm", ["edit", "take"])
def test_a_feed_that_cannot_be_believed_is_not_followed(world: World, harm: str) -> None:
    world.close()
    world.open(with_index=False)
    world.commit(3, "lantern")

    def do_harm(transaction: Any, databases: Any) -> None:
        key = pack(world.stepped.store.position - 1)
        if harm == "edit":
            transaction.put(key, b"rubbish", db=databases["changes"])
        else:
            transaction.delete(key, db=databases["changes"])

    world.stepped.raw(do_harm)
    world.index = LexicalIndex(world.path)
    world.follower = IndexFollower(world.index, EpisodesAndPins(), fill_in_background=False)
    world.stepped.store.follow(world.follower)
    world.fill()
    assert world.found("lantern") == {6, 7, 8}
    world.demand_same()


def test_what_cannot_be_believed_is_not_indexed_and_hurts_nothing_else(world: World) -> None:
    world.commit(3, "lantern")
    world.stepped.raw(lambda txn, databases: txn.put(pack(7), b"x", db=databases["contents"]))
    world.follower.rebuild(world.read)
    world.fill()
    assert world.found("lantern") == {6, 8}
    world.demand_same()


def test_a_failure_is_told_and_the_next_change_catches_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, documents: object, progress: object) -> None:
        raise UnavailableError("the disk is full", reason="INDEX_UNAVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(LexicalIndex, "apply", fail)
        with pytest.raises(UnavailableError):
            world.commit(2, "lantern")
    assert not world.found("lantern")
    world.commit(1, "quorum")
    assert world.found("lantern") == {6, 7}
    world.demand_same()


# --- Filling


def emptied(world: World) -> None:
    """Open again with an index that has nothing yet."""
    world.close()
    world.path.unlink()
    world.open()


def test_the_newest_are_filled_first_while_commits_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_PORTION_DOCUMENTS", 4)
    world.commit(15, "lantern")
    emptied(world)
    committed, below = 20, 21
    while world.follower.fill(world.read):
        world.commit(1, "quorum")
        committed, below = committed + 1, max(1, below - 4)
        keys = list(world.index.keys())
        present = {int(key[8:]) for key in keys if key.startswith("episode:")}
        assert present == set(range(below, committed + 1))
    world.demand_same()


def test_who_is_killed_in_the_middle_goes_on_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_PORTION_DOCUMENTS", 4)
    world.commit(15, "lantern")
    emptied(world)
    for below in (17, 13, 9, 5, 0):
        assert world.follower.fill(world.read)
        assert world.index.progress.below == below
        world.close()
        world.open()
        world.commit(1, "quorum")
    world.demand_same()


def test_a_new_life_in_the_middle_begins_anew(world: World) -> None:
    world.commit(80, "lantern")
    emptied(world)
    assert world.follower.fill(world.read)
    world.close()
    (world.folder / "store" / NEW_LIFE).touch()
    world.open()
    assert world.index.progress.below == 86
    world.demand_same()


class WatchedIndex(LexicalIndex):
    """Notes who writes, and may hold them."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.may_go_on = threading.Event()
        self.holds = False
        super().__init__(None)

    def apply(self, documents: Any, progress: Progress) -> None:
        listed: list[Document] = list(documents)
        self.order.append(progress.below)
        if self.holds:
            assert self.may_go_on.wait(SECONDS)
        super().apply(listed, progress)


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[Store]:
    options = StoreOptions(map_limit_bytes=64 * 1024**2, disk=QuickDisk())
    store = Store(tmp_path / "store", SCHEMA, protection(), options)
    yield store
    store.close()


def commit_to(store: Store, hands: Hands, count: int, words: str) -> None:
    steps = [Step("episode", value=f"{words} number {number}") for number in range(count)]
    store.write(lambda writer: hands.do(writer, steps)).result(SECONDS)


def test_the_background_fills_while_many_write(threaded: Store) -> None:
    hands = Hands(FakeClock(step_ns=1000), IdMaker(FakeClock(), SeededRandomness()))
    commit_to(threaded, hands, 300, "harbour")
    index = LexicalIndex(None)
    follower = IndexFollower(index, EpisodesAndPins())
    threaded.follow(follower)
    for number in range(20):
        commit_to(threaded, hands, 2, f"lantern {number}")
    until(lambda: index.progress.below == 0, "the index is filled")
    demand_same_index(threaded, index, CONTEXT, QUERIES)
    # A rebuild fills again, however the last filling ended.
    for _ in range(3):
        follower.rebuild(threaded.read)
        until(lambda: index.progress.below == 0, "the index is filled again")
    demand_same_index(threaded, index, CONTEXT, QUERIES)
    follower.close()


def test_who_waits_for_an_answer_goes_before_the_background(
    threaded: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_PORTION_DOCUMENTS", 5)
    hands = Hands(FakeClock(step_ns=1000), IdMaker(FakeClock(), SeededRandomness()))
    commit_to(threaded, hands, 100, "harbour")
    index = WatchedIndex()
    follower = IndexFollower(index, EpisodesAndPins(), fill_in_background=False)
    follower.catch_up(threaded.read)
    index.order.clear()
    index.holds = True
    filling = threading.Thread(
        target=lambda: [None for _ in iter(lambda: follower.fill(threaded.read), False)]
    )
    filling.start()
    until(lambda: len(index.order) == 1, "a portion is being indexed")
    commit_to(threaded, hands, 1, "lantern")
    waiting = threading.Thread(target=lambda: follower.catch_up(threaded.read))
    waiting.start()
    until(lambda: vars(follower)["_writers_waiting"], "somebody waits for the index")
    index.holds = False
    index.may_go_on.set()
    waiting.join(SECONDS)
    filling.join(SECONDS)
    # One portion was under way; then came who waited, with what is below as it was.
    assert index.order[:3] == [96, 96, 91]
    demand_same_index(threaded, index, CONTEXT, QUERIES)
    follower.close()


def test_closing_waits_for_the_background_though_somebody_else_filled_the_rest(
    threaded: Store,
) -> None:
    hands = Hands(FakeClock(step_ns=1000), IdMaker(FakeClock(), SeededRandomness()))
    commit_to(threaded, hands, 100, "harbour")
    index = LexicalIndex(None)
    follower = IndexFollower(index, EpisodesAndPins())
    closing: threading.Event = vars(follower)["_closing"]
    reads = threading.Event()

    @contextmanager
    def held_read() -> Iterator[Reader]:
        if threading.current_thread().name == "index-filler":
            reads.set()
            assert closing.wait(SECONDS)
        with threaded.read() as reader:
            yield reader

    follower.catch_up(held_read)
    assert reads.wait(SECONDS)
    while follower.fill(threaded.read):
        pass
    follower.close()
    assert "index-filler" not in [thread.name for thread in threading.enumerate()]
    index.close()


def test_closing_ends_the_filling_and_the_next_start_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit(400)
    world.close()
    world.path.unlink()
    world.open(with_index=False)
    world.index = LexicalIndex(world.path)
    follower = IndexFollower(world.index, EpisodesAndPins())
    world.stepped.store.follow(follower)
    follower.close()
    world.close()
    world.open()
    assert 0 <= world.index.progress.below <= 401
    world.demand_same()
    world.close()
