"""LMDB on a disk: the seam through which a store meets files.

A test hands in a disk that is slow, full or forgetful.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import lmdb

__all__ = ["Disk", "SystemDisk"]

_READERS = 126


class Disk(Protocol):
    """Opens environments and makes commits durable."""

    def open(self, folder: Path, *, map_bytes: int, tables: int) -> lmdb.Environment:
        """Open the environment in the folder."""
        ...

    def committing(self, environment: lmdb.Environment) -> None:
        """Called before each commit.

        Raises:
            OSError: The disk takes no more; nothing of the transaction is kept.
        """
        ...

    def committed(self, environment: lmdb.Environment) -> None:
        """Return when the newest commit is durable. It is seen by readers, so it may not fail."""
        ...


class SystemDisk:
    """The machine's disk. LMDB syncs within each commit."""

    def open(self, folder: Path, *, map_bytes: int, tables: int) -> lmdb.Environment:
        """Open the environment in the folder."""
        return lmdb.open(
            str(folder),
            map_size=map_bytes,
            max_dbs=tables,
            max_readers=_READERS,
            mode=0o600,
            readahead=False,
        )

    def committing(self, environment: lmdb.Environment) -> None:
        """Nothing is known beforehand."""

    def committed(self, environment: lmdb.Environment) -> None:
        """Nothing is left to do."""
