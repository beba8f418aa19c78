"""Homes of their own for tests, with socket paths that stay short."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.kit.paths import Home

__all__ = ["KEYS", "a_folder", "a_home", "clean_environment"]

_ROOM_BYTES = 1024**3
_keys = tempfile.mkdtemp(prefix="mu-keys-")
atexit.register(shutil.rmtree, _keys, ignore_errors=True)
KEYS = {"MUNIMENT_KEY_FOLDER": _keys}
"""Goes when this process ends: a test's key must not stay with the user's own."""

_FOREIGN = ("MUNIMENT_", "SAKUR4_", "KINT_", "SIBYL_")


@contextmanager
def a_folder() -> Iterator[Path]:
    """A folder that is gone after the block, with a short path, in memory where there is room."""
    with tempfile.TemporaryDirectory(prefix="mu-", dir=_quick_folder()) as folder:
        yield Path(folder).resolve()


@contextmanager
def a_home(*, with_runtime: bool = True) -> Iterator[Home]:
    """A home that is gone after the block, with its runtime folder as services have it."""
    with a_folder() as folder:
        home = Home(folder / "home")
        if with_runtime:
            home.runtime.mkdir(mode=0o700, parents=True)
        yield home
        shutil.rmtree(home.runtime, ignore_errors=True)


def _quick_folder() -> str | None:
    # Syncing to a disk would take most of the time.
    shared = Path("/dev/shm")
    has_room = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > _ROOM_BYTES
    return str(shared) if has_room else None


def clean_environment() -> dict[str, str]:
    """This process's environment without what would set up another home, or keep its key."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return own | KEYS
