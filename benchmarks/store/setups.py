"""What is measured: a disk, a protection, and how many write how much at once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import lmdb

from muniment.kit.store.disk import Disk, SystemDisk

__all__ = ["LATE_SYNC_SECONDS", "SHAPES", "LateDisk", "Setup", "Shape", "disk_of"]

LATE_SYNC_SECONDS = 0.005


@dataclass(frozen=True)
class Shape:
    """Writers, and how many writes each has under way before it waits for the oldest."""

    writers: int
    in_flight: int

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.writers} × {self.in_flight}"


SHAPES = (Shape(1, 1), Shape(8, 1), Shape(32, 1), Shape(8, 32))


@dataclass(frozen=True)
class Setup:
    """Which disk and protection a store has, and whether it commits in batches."""

    late_sync: bool
    sealed: bool
    batches: bool = True

    @property
    def name(self) -> str:
        """For tables."""
        disk = f"{LATE_SYNC_SECONDS * 1e3:g} ms sync" if self.late_sync else "this disk"
        return f"{disk}, {'sealed' if self.sealed else 'plain'}"


class LateDisk:
    """A disk whose sync takes so much longer: LMDB's own is left out and made up for later."""

    def open(self, folder: Path, *, map_bytes: int, tables: int) -> lmdb.Environment:
        """Open the environment in the folder, without LMDB's own syncs."""
        return lmdb.open(
            str(folder),
            map_size=map_bytes,
            max_dbs=tables,
            max_readers=126,
            mode=0o600,
            readahead=False,
            sync=False,
        )

    def committing(self, environment: lmdb.Environment) -> None:
        """Nothing is known beforehand."""

    def committed(self, environment: lmdb.Environment) -> None:
        """Return when the newest commit is durable, and not soon."""
        time.sleep(LATE_SYNC_SECONDS)
        environment.sync(True)


def disk_of(setup: Setup) -> Disk:
    """The disk that the setup names."""
    return LateDisk() if setup.late_sync else SystemDisk()
