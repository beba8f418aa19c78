"""Whatever was done to a tree, its index is what a fresh one is, byte for byte."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from muniment.code.readers import Readers
from muniment.code.trees import Trees
from muniment.kit.store import Store
from tests.support.code_edits import Edits
from tests.support.code_trees import (
    FILE_LIMIT_BYTES,
    Repository,
    a_code_store,
    an_index,
    an_index_of,
    current_symbols,
    exported,
)

SEQUENCES = int(os.environ.get("MUNIMENT_TEST_EDITS", "20"))
STEPS = 10


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    readers = Readers(1, FILE_LIMIT_BYTES)
    yield readers
    readers.close()


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_an_index_that_followed_is_as_a_fresh_one(
    readers: Readers, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    repository, chance = Repository(tmp_path / "tree"), random.Random(seed)
    edits, done = Edits(repository, seed), list[str]()
    with ExitStack() as stack:
        store = stack.enter_context(a_code_store(tmp_path / "store"))
        trees = _restarted(stack, readers, store, chance)
        for _ in range(STEPS):
            done += [edits.step() for _ in range(chance.randrange(1, 4))]
            if chance.random() < 0.2:
                trees.close()
                trees = _restarted(stack, readers, store, chance)
                done.append("restart")
            if chance.random() < 0.7:
                current_symbols(trees, repository.path, "alpha")
                done.append("query")
            if chance.random() < 0.3:
                assert exported(trees, repository.path) == _fresh(readers, repository), done
        followed = exported(trees, repository.path)
        assert followed == _fresh(readers, repository), done
        assert followed


def _restarted(stack: ExitStack, readers: Readers, store: Store, chance: random.Random) -> Trees:
    return stack.enter_context(an_index_of(readers, store, watches=chance.random() < 0.5))


def _fresh(readers: Readers, repository: Repository) -> bytes:
    with an_index(readers) as trees:
        return exported(trees, repository.path)
