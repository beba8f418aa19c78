"""A home's stores come under another key, all of them or, for a while, some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muniment.kit.errors import PreconditionError, TamperedError
from muniment.kit.home_key import HomeKey
from muniment.kit.key_change import change_key, stores_with_data
from muniment.kit.paths import Home
from muniment.kit.randomness import Randomness
from tests.support.seams import SeededRandomness
from tests.support.small_stores import contents, quiet, write_some
from tests.support.swapper import folders_of, make_old_store, open_of, shelf_of


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path.resolve() / "home")
    for folder in folders_of(home):
        folder.parent.mkdir(parents=True)
    return home


@pytest.fixture
def randomness() -> Randomness:
    return SeededRandomness()


def fill(home: Home) -> list[Any]:
    found = []
    for folder in folders_of(home):
        store = open_of(home, folder)
        write_some(store)
        found.append(contents(store))
        store.close()
    return found


def contents_of(home: Home) -> list[Any]:
    found = []
    for folder in folders_of(home):
        store = open_of(home, folder)
        found.append(contents(store))
        store.close()
    return found


def test_all_stores_come_under_it(home: Home, randomness: Randomness) -> None:
    before = fill(home)
    shelf, key = shelf_of(home), HomeKey.make(randomness, sealed=True)
    change_key(shelf, key, stores_with_data(folders_of(home)), randomness, quiet)
    assert shelf.load() == key
    assert shelf.load_next() is None
    assert contents_of(home) == before


def test_a_home_without_data_just_gets_it(home: Home, randomness: Randomness) -> None:
    shelf, key = shelf_of(home), HomeKey.make(randomness, sealed=True)
    assert stores_with_data(folders_of(home)) == []
    change_key(shelf, key, [], randomness, quiet)
    assert shelf.load() == key
    store = open_of(home, folders_of(home)[0])
    assert store.protection.sealed
    store.close()


def test_one_that_fails_changes_nothing(home: Home, randomness: Randomness) -> None:
    before = fill(home)
    shelf, first = shelf_of(home), shelf_of(home).load()
    data = folders_of(home)[0] / "data.mdb"
    sound = data.read_bytes()
    data.write_bytes(sound.replace(b"text 12", b"text 21"))
    key = HomeKey.make(randomness, sealed=True)
    with pytest.raises(TamperedError):
        change_key(shelf, key, stores_with_data(folders_of(home)), randomness, quiet)
    assert shelf.load() == first
    assert shelf.load_next() is None
    data.write_bytes(sound)
    assert contents_of(home) == before


def test_where_some_are_done_the_rest_can_wait(home: Home, randomness: Randomness) -> None:
    before = fill(home)
    shelf, first = shelf_of(home), shelf_of(home).load()
    data = folders_of(home)[1] / "data.mdb"
    sound = data.read_bytes()
    data.write_bytes(sound.replace(b"text 12", b"text 21"))
    key = HomeKey.make(randomness, sealed=True)
    with pytest.raises(TamperedError):
        change_key(shelf, key, stores_with_data(folders_of(home)), randomness, quiet)
    assert shelf.load() == first
    assert shelf.load_next() == key
    data.write_bytes(sound)
    assert contents_of(home) == before


def test_a_lost_key_cannot_be_changed(home: Home, randomness: Randomness) -> None:
    fill(home)
    shelf = shelf_of(home)
    shelf.keep(HomeKey.make(randomness, sealed=False), randomness)
    with pytest.raises(PreconditionError) as refused:
        change_key(
            shelf,
            HomeKey.make(randomness, sealed=True),
            stores_with_data(folders_of(home)),
            randomness,
            quiet,
        )
    assert refused.value.reason == "STORE_KEY_OTHER"
    assert shelf.load_next() is None


def test_a_store_of_an_earlier_version_is_brought_up_first(home: Home) -> None:
    make_old_store(folders_of(home)[0], ["a text"])
    with pytest.raises(PreconditionError) as refused:
        stores_with_data(folders_of(home))
    assert refused.value.reason == "STORE_NOT_MIGRATED"
