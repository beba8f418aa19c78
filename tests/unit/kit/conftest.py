"""A home of its own, and an environment that says nothing of others."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from muniment.kit.paths import Home
from tests.support.homes import a_folder, a_home, clean_environment


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged, instead of its rendering."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A quick one, in place of pytest's."""
    with a_folder() as folder:
        yield folder


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in os.environ.keys() - clean_environment().keys():
        monkeypatch.delenv(name)
    with a_home() as home:
        yield home
