"""The dense index and its store part ways and come together, in the background."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.index.dense import DenseIndex, DenseProgress
from muniment.kit.index.dense_filling import DenseFollower
from muniment.kit.index.dense_vectors import VECTORS, KeptVectors, text_digest
from muniment.kit.store import Store, pack
from muniment.kit.store.folders import NEW_LIFE
from tests.support.dense import (
    MODEL,
    HashedEmbedder,
    NotesSource,
    an_index,
    notes_store,
    put,
    take,
    vectors_of,
)
from tests.support.stores import NOTES
from tests.waiting import until

SECONDS = 20.0


class World:
    """A store with an index that follows it."""

    def __init__(self, folder: Path, *, sealed: bool = False, **options: Any) -> None:
        self.folder = folder
        self.sealed = sealed
        self.options = options
        self.embedder = HashedEmbedder()
        self.open()

    def open(self, *, following: bool = True) -> None:
        """Open the store, and the index if it is to follow."""
        self.store = notes_store(self.folder / "store", sealed=self.sealed, **self.options)
        self.follower: DenseFollower | None = None
        if following:
            self.follow()

    def follow(self) -> None:
        """Let an index follow."""
        self.index = DenseIndex(
            None if self.sealed else self.folder / "dense",
            self.embedder.model,
            self.embedder.dimensions,
        )
        self.follower = DenseFollower(self.store, self.index, NotesSource(), self.embedder)
        self.store.follow(self.follower)

    def close(self) -> None:
        """Close what is open."""
        if self.follower is not None:
            self.follower.close()
            self.index.close()
        self.store.close()

    def again(self) -> None:
        """Close and open."""
        self.close()
        self.open()

    def settle(self) -> None:
        """Wait until the index has everything."""
        assert self.follower is not None
        assert self.follower.settle(SECONDS), self.follower.trouble

    def notes(self) -> dict[str, str]:
        """What is to be found."""
        with self.store.read() as reader:
            rows = dict(reader.survey(NOTES))
        texts = {str(key[0]): row.text for key, row in rows.items()}  # type: ignore[union-attr]
        return {name: value for name, value in texts.items() if value != "-"}

    def kept(self) -> set[str]:
        """Digests of the vectors that the store keeps."""
        with self.store.read() as reader:
            return {key[0].hex() for key, _ in reader.survey(VECTORS)}  # type: ignore[union-attr]

    def demand_same(self, *, all_kept: bool = True) -> None:
        """Fail where the index and the vectors are not those of the notes."""
        self.settle()
        notes = self.notes()
        digests = {name: text_digest(self.embedder.model, value) for name, value in notes.items()}
        expected = {name: (f"kind-{notes[name][:1]}", digests[name]) for name in notes}
        assert self.index.known(list(self.index.keys())) == expected
        assert self.kept() <= set(digests.values())
        assert not all_kept or self.kept() == set(digests.values())
        vectors = vectors_of(self.index, notes)
        for name, value in notes.items():
            exact = HashedEmbedder().embed([value])[0]
            assert np.allclose(vectors[name], exact, atol=2e-3)
        assert self.follower is not None
        assert (self.follower.waiting(), self.follower.trouble) == (0, "")


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, sealed=request.param)
    put(made.store, **{f"n{number}": f"harbour {number}" for number in range(12)})
    made.settle()
    yield made
    made.close()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    put(made.store, **{f"n{number}": f"harbour {number}" for number in range(12)})
    made.settle()
    yield made
    made.close()


def test_it_has_what_is_written_and_loses_what_is_taken(world: World) -> None:
    world.demand_same()
    put(world.store, n1="lantern", n2="-", other="lantern", more="quorum")
    take(world.store, "n3")
    world.demand_same()
    assert sorted(world.embedder.embedded)[-3:] == ["harbour 9", "lantern", "quorum"]


def test_nothing_is_embedded_twice(world: World) -> None:
    embedded = len(world.embedder.embedded)
    put(world.store, n1="harbour 1", same="harbour 2")
    world.demand_same()
    assert world.follower is not None
    world.follower.rebuild()
    world.demand_same()
    world.again()
    world.demand_same()
    assert len(world.embedder.embedded) == embedded


def test_a_text_that_two_had_goes_with_the_second(world: World) -> None:
    put(world.store, one="shared", two="shared")
    world.demand_same()
    take(world.store, "one")
    world.demand_same()
    assert text_digest(MODEL, "shared") in world.kept()
    take(world.store, "two")
    world.demand_same()
    assert text_digest(MODEL, "shared") not in world.kept()


def test_who_writes_does_not_wait_and_who_asks_is_told(world: World) -> None:
    assert world.follower is not None
    world.embedder.may_go_on.clear()
    put(world.store, **{f"m{number}": f"quorum {number}" for number in range(3)})
    assert world.follower.waiting() == 3
    assert not world.follower.settle(0.0)
    world.embedder.may_go_on.set()
    world.demand_same()


def test_keeping_vectors_wakes_nobody_for_long(
    plain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[DenseProgress] = []

    def looked(index: DenseIndex) -> DenseProgress:
        looks.append(progress(index))
        return looks[-1]

    progress = vars(DenseIndex)["progress"].fget
    monkeypatch.setattr(DenseIndex, "progress", property(looked))
    put(plain.store, one="lantern")
    plain.settle()
    plain.store.write(lambda _: None).result(SECONDS)
    plain.settle()
    assert len(looks) <= 8


@pytest.mark.parametrize("closed", [False, True])
def test_what_is_purged_while_it_is_embedded_leaves_no_vector(world: World, closed: bool) -> None:
    assert world.follower is not None
    follower = world.follower
    world.embedder.begins.clear()
    world.embedder.may_go_on.clear()
    put(world.store, secret="a secret")
    assert world.embedder.begins.wait(SECONDS)

    def purge(writer: Any) -> None:
        writer.purge(NOTES, "secret")
        follower.forget(writer, "a secret")

    world.store.write(purge).result(SECONDS)
    world.embedder.may_go_on.set()
    if closed:
        world.again()
    world.demand_same()
    assert text_digest(MODEL, "a secret") not in world.kept()


def test_a_vector_that_was_forgotten_is_made_again_where_it_is_needed(plain: World) -> None:
    follower = plain.follower
    assert follower is not None
    plain.store.write(lambda writer: follower.forget(writer, "harbour 1")).result(SECONDS)
    assert text_digest(MODEL, "harbour 1") not in plain.kept()
    follower.rebuild()
    plain.demand_same()
    assert plain.embedder.embedded.count("harbour 1") == 2


# --- Behind, ahead, foreign, damaged


def test_one_that_was_away_catches_up(plain: World) -> None:
    plain.close()
    plain.open(following=False)
    put(plain.store, **{f"m{number}": f"lantern {number}" for number in range(150)})
    take(plain.store, "n1", "m1")
    plain.follow()
    assert plain.follower is not None
    plain.demand_same()


def test_one_whose_changes_were_dropped_is_made_anew(tmp_path: Path) -> None:
    world = World(tmp_path, retention_changes=10)
    put(world.store, gone="will be gone", stays="stays")
    world.settle()
    world.close()
    world.open(following=False)
    take(world.store, "gone")
    for number in range(150):
        put(world.store, **{f"m{number % 20}": f"lantern {number}"})
    world.follow()
    world.demand_same()
    world.close()


def test_one_of_another_life_is_made_anew(plain: World) -> None:
    plain.close()
    copy = plain.folder / "copy.mdb"
    shutil.copyfile(plain.folder / "store" / "data.mdb", copy)
    plain.open()
    put(plain.store, n1="of the other life", more="too")
    plain.settle()
    plain.close()
    shutil.copyfile(copy, plain.folder / "store" / "data.mdb")
    (plain.folder / "store" / NEW_LIFE).touch()
    plain.open()
    plain.demand_same()
    assert "more" not in plain.notes()


def test_one_that_is_ahead_is_made_anew(plain: World) -> None:
    ahead = DenseProgress(plain.store.position + 5, plain.store.incarnation, None)
    plain.index.apply((), (), ahead)
    put(plain.store, n1="lantern")
    plain.demand_same()


@pytest.mark.parametrize("harm", ["edited", "taken"])
def test_a_feed_that_cannot_be_believed_is_not_followed(plain: World, harm: str) -> None:
    plain.close()
    plain.open(following=False)
    put(plain.store, n1="lantern", n2="quorum")
    environment = vars(plain.store)["_environment"]
    database = environment.open_db(b"changes")
    with environment.begin(write=True) as transaction:
        key = pack(plain.store.position - 1)
        if harm == "edited":
            transaction.put(key, b"rubbish", db=database)
        else:
            transaction.delete(key, db=database)
    plain.follow()
    plain.demand_same()


def test_a_folder_that_vanishes_under_way_is_made_anew(plain: World) -> None:
    shutil.rmtree(plain.folder / "dense")
    put(plain.store, n1="lantern")
    plain.demand_same()


def test_another_model_makes_all_vectors_anew(plain: World) -> None:
    plain.close()
    plain.embedder = HashedEmbedder("hashed/2")
    plain.open()
    plain.demand_same()
    assert len(plain.embedder.embedded) == 12


def test_vectors_that_cannot_be_believed_are_made_anew(plain: World) -> None:
    environment = vars(plain.store)["_environment"]
    database = environment.open_db(b"vectors")
    with environment.begin(write=True) as transaction:
        key = pack(bytes.fromhex(text_digest(MODEL, "harbour 1")))
        transaction.put(key, b"rubbish", db=database)
    assert plain.follower is not None
    plain.follower.rebuild()
    plain.demand_same()
    assert plain.embedder.embedded.count("harbour 1") == 2


# --- Trouble


def test_a_model_that_cannot_be_used_is_told_and_the_next_change_tries_again(plain: World) -> None:
    assert plain.follower is not None
    plain.embedder.trouble = "there is no model"
    put(plain.store, n1="lantern")
    assert not plain.follower.settle(SECONDS)
    assert plain.follower.trouble == "there is no model"
    assert plain.embedder.asked <= 3
    assert plain.follower.waiting() == 1
    plain.embedder.trouble = None
    put(plain.store, n2="quorum")
    plain.demand_same()


def test_an_index_that_cannot_be_written_is_told(
    plain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain.follower is not None

    def fail(*_: object) -> None:
        raise UnavailableError("no room", reason="INDEX_UNAVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(DenseIndex, "apply", fail)
        put(plain.store, n1="lantern")
        assert not plain.follower.settle(SECONDS)
        assert plain.follower.trouble == "no room"
    plain.demand_same()


@pytest.mark.parametrize("after", range(1, 9))
def test_wherever_it_ends_the_next_start_sets_all_right(
    plain: World, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    left = iter(range(after))

    def ending(done: Any) -> Any:
        def do(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise RuntimeError("killed")
            return done(*arguments)

        return do

    assert plain.follower is not None
    with monkeypatch.context() as patch:
        for owner, name in ((DenseIndex, "apply"), (KeptVectors, "keep"), (KeptVectors, "drop")):
            patch.setattr(owner, name, ending(vars(owner)[name]))
        put(plain.store, n1="lantern", n2="-", n3="harbour 4", more="quorum")
        take(plain.store, "n4")
        plain.follower.settle(SECONDS)
        plain.close()
    plain.open(following=False)
    take(plain.store, "n1", "more")
    plain.follow()
    plain.demand_same(all_kept=False)
    assert plain.follower is not None
    plain.follower.rebuild()
    plain.demand_same()


# --- Closing


def test_closing_ends_the_thread_in_the_middle_and_the_next_start_goes_on(plain: World) -> None:
    plain.embedder.begins.clear()
    plain.embedder.may_go_on.clear()
    put(plain.store, **{f"m{number}": f"lantern {number}" for number in range(60)})
    assert plain.embedder.begins.wait(SECONDS)
    assert plain.follower is not None
    closing = threading.Thread(target=plain.follower.close)
    closing.start()
    until(lambda: vars(plain.follower)["_closing"], "it is closing")
    plain.embedder.may_go_on.set()
    closing.join(SECONDS)
    assert not closing.is_alive()
    assert "dense-index" not in [thread.name for thread in threading.enumerate()]
    assert not plain.follower.settle(0.0)
    plain.again()
    plain.demand_same()


def test_one_that_never_followed_closes(tmp_path: Path) -> None:
    store: Store = notes_store(tmp_path / "store")
    index = an_index(None)
    follower = DenseFollower(store, index, NotesSource(), HashedEmbedder())
    assert not follower.settle(0.0)
    follower.close()
    follower.catch_up(store.read)
    assert "dense-index" not in [thread.name for thread in threading.enumerate()]
    index.close()
    store.close()
