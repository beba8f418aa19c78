"""One house for all that is killed in it, with a project for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.house import House, a_house


@pytest.fixture(scope="session")
def armoury(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the house's fault points are armed."""
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def house(armoury: Path) -> Iterator[House]:
    """A house that is up."""
    with a_house(MUNIMENT_FAULTS=str(armoury)) as house:
        house.must("up")
        yield house


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project that no other test has."""
    return tmp_path
