"""A store's folder is replaced whole; what an interruption leaves is settled."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from muniment.kit.store.folders import begin_building, free_name, settle, swap_in
from tests.support.seams import FakeClock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def make(folder: Path, word: str) -> None:
    folder.mkdir()
    (folder / "data.mdb").write_text(word)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir())


def word_in(folder: Path) -> str:
    return (folder / "data.mdb").read_text()


def test_the_new_takes_the_place_of_the_old(folder: Path) -> None:
    make(folder, "old")
    (begin_building(folder) / "data.mdb").write_text("new")
    assert word_in(folder) == "old"
    swap_in(folder)
    assert word_in(folder) == "new"
    assert names(folder) == ["store"]


def test_the_old_may_stay_beside_it(folder: Path) -> None:
    make(folder, "old")
    (begin_building(folder) / "data.mdb").write_text("new")
    swap_in(folder, aside=folder.with_name("store.kept"))
    assert word_in(folder.with_name("store.kept")) == "old"
    assert names(folder) == ["store", "store.kept"]


def test_there_may_be_no_old_one(folder: Path) -> None:
    (begin_building(folder) / "data.mdb").write_text("new")
    swap_in(folder, aside=folder.with_name("store.kept"))
    assert names(folder) == ["store"]


def test_what_was_being_built_is_thrown_away(folder: Path) -> None:
    make(folder, "old")
    (begin_building(folder) / "data.mdb").write_text("half")
    assert list(begin_building(folder).iterdir()) == []
    settle(folder)
    assert word_in(folder) == "old"
    assert names(folder) == ["store"]


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (("store", "store.next"), "store"),
        (("store.next", "store.old"), "store.next"),
        (("store.next", "store.v1-20260101T000000Z"), "store.next"),
        (("store.next",), "store.next"),
        (("store", "store.old"), "store"),
        (("store", "store.building", "store.old"), "store"),
        (("store",), "store"),
        ((), None),
    ],
)
def test_each_interruption_is_settled(
    folder: Path, left: tuple[str, ...], expected: str | None
) -> None:
    for name in left:
        make(folder.with_name(name), name)
    kept = [name for name in left if ".v1-" in name]
    settle(folder)
    settle(folder)
    assert names(folder) == (["store", *kept] if expected else [])
    if expected:
        assert word_in(folder) == expected


def test_kept_folders_have_names_of_their_own(folder: Path) -> None:
    clock = FakeClock(1_767_268_800_000_000_000)
    found = []
    for _ in range(3):
        found.append(free_name(folder, "v1", clock))
        found[-1].mkdir()
    assert [path.name for path in found] == [
        "store.v1-20260101T120000Z",
        "store.v1-20260101T120000Z-2",
        "store.v1-20260101T120000Z-3",
    ]
    assert all(one != other for one, other in itertools.combinations(found, 2))
