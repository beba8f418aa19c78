"""Homes of their own for tests, with socket paths that stay short."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.kit.paths import Home

__all__ = ["a_home", "clean_environment"]

_FOREIGN = ("MUNIMENT_", "SAKUR4_", "KINT_", "SIBYL_")


@contextmanager
def a_home(*, with_runtime: bool = True) -> Iterator[Home]:
    """A home that is gone after the block, with its runtime folder as services have it."""
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        home = Home(Path(folder).resolve() / "home")
        if with_runtime:
            home.runtime.mkdir(mode=0o700, parents=True)
        yield home
        shutil.rmtree(home.runtime, ignore_errors=True)


def clean_environment() -> dict[str, str]:
    """This process's environment without what would set up another home."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
