"""A store's folder is changed by a process that dies in the middle: there is always a store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muniment.kit.faults import VARIABLE
from muniment.kit.paths import Home
from muniment.kit.store.backup import backup_store
from muniment.kit.store.schemas import peek_schema
from tests.support.rows import scan
from tests.support.small_stores import TEXTS, contents, quiet, write_some
from tests.support.swapper import OLD_VERSION, folders_of, make_old_store, open_of, shelf_of

ROOT = Path(__file__).resolve().parents[2]
SWAP_POINTS = ("swap.ready", "swap.moved", "swap.done")
KEY_POINTS = ("key.prepared", "key.rewritten", "key.promoted")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path.resolve() / "home")
    home.path.mkdir()
    return home


def swap(home: Home, what: str, point: str | None = None, visit: int = 1) -> None:
    """Let a process do it; killed at the point, where one is named."""
    faults = home.path.with_name("faults")
    faults.mkdir(exist_ok=True)
    if point is not None:
        (faults / point).write_text(str(visit))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.swapper", str(home.path), what],
        cwd=ROOT,
        env={**os.environ, VARIABLE: str(faults)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    expected = 0 if point is None else -signal.SIGKILL
    assert ran.returncode == expected, ran.stderr.decode()
    assert not list(faults.iterdir()), f"{point} was never visited"


def contents_of(home: Home) -> list[Any]:
    """What the home's stores have, opened as after a restart."""
    found = []
    for folder in folders_of(home):
        store = open_of(home, folder)
        assert not store.doubts
        found.append(contents(store))
        store.close()
        assert [path.name for path in folder.parent.iterdir()] == ["store"]
    return found


def fill(home: Home) -> None:
    for number, folder in enumerate(folders_of(home), 1):
        folder.parent.mkdir(parents=True)
        store = open_of(home, folder)
        write_some(store, 1, 20 * number)
        store.close()


@pytest.mark.parametrize("what", ["seal", "rotate"])
@pytest.mark.parametrize(
    ("point", "visit"),
    [
        *((point, visit) for point in SWAP_POINTS for visit in (1, 2)),
        *((one, 1) for one in KEY_POINTS),
    ],
)
def test_a_change_of_key(home: Home, what: str, point: str, visit: int) -> None:
    fill(home)
    before = contents_of(home)
    first = shelf_of(home).load()
    swap(home, what, point, visit)
    assert contents_of(home) == before
    swap(home, "finish")
    assert contents_of(home) == before
    shelf = shelf_of(home)
    second = shelf.load()
    assert first is not None
    assert second is not None
    assert second != first
    assert shelf.load_next() is None
    for folder in folders_of(home):
        stored = peek_schema(folder)
        assert stored is not None
        assert second.opens(stored)


@pytest.mark.parametrize("point", SWAP_POINTS)
def test_a_restore(home: Home, point: str) -> None:
    fill(home)
    folder = folders_of(home)[0]
    store = open_of(home, folder)
    backup_store(store, "small", home.path / "copy", quiet)
    copied = contents(store)
    write_some(store, 30, 40)
    present = contents(store)
    store.close()
    swap(home, "restore", point)
    store = open_of(home, folder)
    found = contents(store)
    assert not store.doubts
    store.close()
    expected = present if point == "swap.ready" else copied
    assert found["texts"] == expected["texts"]
    assert (found["state"] == present["state"]) == (point == "swap.ready")
    kept = [path for path in folder.parent.iterdir() if path.name != "store"]
    assert len(kept) == (0 if point == "swap.ready" else 1)


@pytest.mark.parametrize("point", [*SWAP_POINTS, "store.after_commit"])
def test_a_migration(home: Home, point: str) -> None:
    folder = folders_of(home)[0]
    texts = [f"text {number}" for number in range(50)]
    make_old_store(folder, texts)
    swap(home, "open", point)
    store = open_of(home, folder)
    with store.read() as reader:
        assert [row.text for _, row in scan(reader, TEXTS)] == texts
    assert not store.doubts
    store.close()
    (kept,) = (path for path in folder.parent.iterdir() if path.name != "store")
    assert kept.name.startswith(f"store.v{OLD_VERSION}-")
    stored = peek_schema(kept)
    assert stored is not None
    assert stored.version == OLD_VERSION
