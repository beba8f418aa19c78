"""Whose turn it is with a snapshot: lending its file to a server and removing it take turns."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

__all__ = ["SnapshotTurns"]


class SnapshotTurns:
    """One at a time has a snapshot. Who also takes a slot's turn takes that first."""

    def __init__(self) -> None:
        # A lock lives as long as somebody has it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, snapshot_id: str) -> asyncio.Lock:
        """What is held by who has the snapshot to itself."""
        return self._locks.setdefault(snapshot_id, asyncio.Lock())
