"""A home with short socket paths, and a manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.paths import Home
from tests.unit.bridge.manifest_fixture import write_manifest


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        yield Home(Path(folder).resolve() / "home")


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write_manifest(tmp_path)
