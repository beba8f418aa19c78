"""Trees that are watched: what changes on the disk is taken in without being asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.code.readers import Readers
from muniment.code.trees import LiveTree, Trees
from muniment.v1 import code_pb2
from tests.support.code_trees import PROJECT, Repository, an_index, current_symbols, symbols
from tests.waiting import until


@pytest.fixture
def trees(readers: Readers) -> Iterator[Trees]:
    with an_index(readers, watches=True) as trees:
        yield trees


def _watched(trees: Trees, root: Path) -> LiveTree:
    """The tree, once it is watched."""
    current_symbols(trees, root, "x")
    live = trees.find(PROJECT, str(root))
    until(live.is_current, "the tree is watched")
    return live


def _knows(live: LiveTree, name: str) -> bool:
    """Whether the index has a symbol of that name, without looking at the disk for it."""
    with live.tree.graph() as graph:
        return bool(graph.find(name).places)


def test_edits_new_files_moves_and_deletions_are_taken_in(
    trees: Trees, repository: Repository
) -> None:
    root = repository.path
    repository.write(a="def one(): pass\n", sub__b="def two(): pass\n")
    live = _watched(trees, root)
    repository.write(a="def uno(): pass\n")
    until(lambda: _knows(live, "uno") and not _knows(live, "one"), "the edit is seen")
    repository.write(new__deep__c="def three(): pass\n")
    until(lambda: _knows(live, "three"), "the new folder is seen")
    repository.write(new__deep__d="def four(): pass\n")
    until(lambda: _knows(live, "four"), "what comes into the new folder is seen")
    (root / "sub").rename(root / "moved")
    until(lambda: _knows(live, "moved::b::two"), "the folder has its new name")
    assert not _knows(live, "sub::b::two")
    (root / "moved/b.py").unlink()
    until(lambda: not _knows(live, "two"), "the file is gone")
    (root / ".gitignore").write_text("new/\n")
    until(lambda: not _knows(live, "three"), "what is ignored is gone")


def test_a_first_file_in_an_empty_folder_is_seen(trees: Trees, repository: Repository) -> None:
    (repository.path / "empty/inner").mkdir(parents=True)
    live = _watched(trees, repository.path)
    repository.write(empty__inner__a="def one(): pass\n")
    until(lambda: _knows(live, "one"), "the file is seen")


def test_what_is_ignored_is_looked_at_once(trees: Trees, repository: Repository) -> None:
    (repository.path / ".gitignore").write_text("*.log\n")
    repository.write(a="def one(): pass\n")
    live = _watched(trees, repository.path)
    (repository.path / "a.log").write_text("x")
    repository.write(a="def uno(): pass\n")
    until(lambda: _knows(live, "uno"), "the edit is seen")
    assert not live.tree.knows("a.log")
    assert symbols(trees, repository.path, "uno").value.definitions


def test_an_answer_does_not_wait_for_the_watch(trees: Trees, repository: Repository) -> None:
    """A query compares with the disk: what was written before it is in its answer."""
    root = repository.path
    repository.write(a="def f0(): pass\n")
    _watched(trees, root)
    for number in range(1, 12):
        if number % 2:
            repository.write(a=f"def f{number}(): pass\n")
        else:
            repository.write(**{f"new{number}": f"def f{number}(): pass\n"})
        found = symbols(trees, root, f"f{number}")
        assert found.state.freshness == code_pb2.FRESHNESS_CURRENT
        assert found.value.definitions, number


def test_what_git_is_told_counts_at_once(trees: Trees, repository: Repository) -> None:
    repository.write(ignored="def one(): pass\n", a="")
    (repository.path / ".gitignore").write_text("ignored.py\n")
    _watched(trees, repository.path)
    assert not symbols(trees, repository.path, "one").value.definitions
    repository.git("add", "--force", "ignored.py")
    assert symbols(trees, repository.path, "one").value.definitions


def test_a_tree_with_a_name_that_cannot_be_watched_is_compared(
    trees: Trees, repository: Repository
) -> None:
    folder = Path(os.fsdecode(os.fsencode(repository.path) + b"/bad\xff"))
    folder.mkdir()
    (folder / "a.py").write_text("def one(): pass\n")
    found = current_symbols(trees, repository.path, "one")
    assert found.value.definitions
    (folder / "a.py").write_text("def two(): pass\n")
    found = symbols(trees, repository.path, "two")
    assert found.value.definitions
    assert (found.state.freshness, found.state.is_watched) == (code_pb2.FRESHNESS_CURRENT, False)


def test_a_tree_that_is_let_go_is_watched_no_more(trees: Trees, repository: Repository) -> None:
    repository.write(a="")
    live = _watched(trees, repository.path)
    trees.forget_project(PROJECT)
    assert not live.is_current()
