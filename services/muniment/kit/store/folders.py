"""A store's folder, replaced as a whole: after a crash there is the old one or the new one.

Beside the folder `store` there may be, for as long as it is being replaced,

- `store.building`: not complete yet;
- `store.next`: complete, about to take the store's place;
- `store.old`: its place was taken, and nobody needs it any more.

Renames within one folder are durable in order, since each is synced before the next.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.kit.files import private_folder, sync_folder

__all__ = ["NEW_LIFE", "begin_building", "free_name", "set_aside", "settle", "swap_in"]

NEW_LIFE = "new-incarnation"
"""A file of this name in a store's folder says that the store came from a copy: its next opening
begins a new incarnation, and removes the file."""


def begin_building(folder: Path) -> Path:
    """An empty folder in which to build what will take the store's place."""
    settle(folder)
    return private_folder(_beside(folder, "building"))


def settle(folder: Path) -> None:
    """End a replacement that was interrupted, and remove what it left.

    For whoever has the store for himself: it throws away what somebody else is building.
    """
    ready = _beside(folder, "next")
    if ready.exists() and not folder.exists():
        ready.rename(folder)
        sync_folder(folder.parent)
    if folder.exists():
        for kind in ("next", "old"):
            _remove(_beside(folder, kind))
    _remove(_beside(folder, "building"))


def swap_in(folder: Path, *, aside: Path | None = None) -> None:
    """Let what was built take the store's place; the present one moves aside, or goes.

    Files in what was built must be on disk already.
    """
    ready, replaced = _beside(folder, "next"), _beside(folder, "old")
    built = _beside(folder, "building")
    sync_folder(built)
    _rename(built, ready)
    faults.reach("swap.ready")
    if folder.exists():
        _rename(folder, aside or replaced)
    faults.reach("swap.moved")
    _rename(ready, folder)
    faults.reach("swap.done")
    _remove(replaced)


def free_name(folder: Path, what: str, clock: Clock) -> Path:
    """A path beside the store that nothing has: `store.WHAT-20260101T120000Z`, or with a number."""
    stamp = timestamp(clock).ToDatetime().strftime("%Y%m%dT%H%M%SZ")
    first = _beside(folder, f"{what}-{stamp}")
    found, number = first, 1
    while found.exists():
        number += 1
        found = first.with_name(f"{first.name}-{number}")
    return found


def set_aside(folder: Path) -> list[Path]:
    """Copies of the store that were moved aside: by a restore, or as the way back to a version."""
    passing = {_beside(folder, kind) for kind in ("building", "next", "old")}
    return sorted(set(folder.parent.glob(f"{folder.name}.*")) - passing)


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f"{folder.name}.{kind}")


def _rename(source: Path, target: Path) -> None:
    source.rename(target)
    sync_folder(target.parent)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
