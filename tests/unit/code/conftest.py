"""Parser processes for the tests of a module, and a git that knows nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.code.readers import Readers
from tests.support.code_trees import FILE_LIMIT_BYTES, Repository


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    readers = Readers(1, FILE_LIMIT_BYTES)
    yield readers
    readers.close()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A new one; the user's own settings of git are not in force."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Repository(tmp_path / "tree")
