"""Removing snapshots: the file first, then what is known of it; and what crashes left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.files import sync_folder
from muniment.kit.store import Once, Store, Writer
from muniment.slots import snapshots
from muniment.slots.places import PLAIN_SUFFIX, SEALED_SUFFIX, Places
from muniment.slots.writing import write
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["Remover"]

_LONGEST_SAVE_NS = 1800 * 1_000_000_000
_SUFFIXES = ("", SEALED_SUFFIX, PLAIN_SUFFIX)

_log = structlog.get_logger()


@dataclass(frozen=True)
class Remover:
    """Removes snapshots of one index."""

    store: Store
    clock: Clock
    places_of: Callable[[str], Places]
    """The folders of the server of that name; ours alone where it is known no more."""

    async def remove(self, snapshot_id: str) -> None:
        """Remove a snapshot. One that its server may be writing yet is looked for again.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        row = await write(self.store, lambda writer: snapshots.leave(writer, snapshot_id))
        await self._finish(row)

    async def remove_once(
        self, call: CallContext, request: slots_pb2.DeleteSnapshotRequest
    ) -> slots_pb2.DeleteSnapshotResponse:
        """The same, as a caller asks for it: once for its key.

        Raises:
            NotFoundError: There is no such snapshot.
        """

        def change(writer: Writer) -> slots_pb2.DeleteSnapshotResponse:
            row = snapshots.leave(writer, request.snapshot_id)
            is_here = row.snapshot.place != slots_pb2.SNAPSHOT_PLACE_SERVER
            return slots_pb2.DeleteSnapshotResponse(file_removed=is_here)

        once = Once(call, request, slots_pb2.DeleteSnapshotResponse, change, self.clock)
        response = await write(self.store, once.run)
        faults.reach("slots.before_remove")
        await self.settle(is_start=False)
        return response

    async def discard(self, snapshot: slots_pb2.Snapshot, places: Places) -> None:
        """Take back a snapshot that was begun and came to nothing."""
        await asyncio.to_thread(_unlink, snapshot, places)
        await write(self.store, lambda writer: snapshots.discard(writer, snapshot.snapshot_id))

    async def settle(self, *, is_start: bool) -> None:
        """Finish what was cut short: what was leaving, goes; at the start what was begun, too."""

        def left() -> list[store_pb2.StoredSnapshot]:
            with self.store.read() as reader:
                if is_start:
                    for row in snapshots.snapshots(reader).rows:
                        _take_back(row.snapshot, self.places_of(row.snapshot.server))
                return snapshots.unfinished(reader)

        for row in await asyncio.to_thread(left):
            if row.stage == store_pb2.SNAPSHOT_STAGE_LEAVING:
                await self._finish(row)
            elif is_start:
                _log.info("a snapshot that was cut short is removed", id=row.snapshot.snapshot_id)
                await self.remove(row.snapshot.snapshot_id)

    async def _finish(self, row: store_pb2.StoredSnapshot) -> None:
        snapshot = row.snapshot
        await asyncio.to_thread(_unlink, snapshot, self.places_of(snapshot.server))
        # Until then the server may write the file anew, and it is looked for again.
        written_by = snapshot.created_at.ToNanoseconds() + _LONGEST_SAVE_NS
        if row.was_whole or written_by < self.clock.now_ns():
            await write(self.store, lambda writer: snapshots.discard(writer, snapshot.snapshot_id))


def _take_back(snapshot: slots_pb2.Snapshot, places: Places) -> None:
    """Remove what was lent to the server for a restore that a crash cut short."""
    if snapshot.place != slots_pb2.SNAPSHOT_PLACE_FOLDER:
        return
    lent = places.server_folder or places.folder
    _removed(lent / f"{snapshot.file_name}{PLAIN_SUFFIX}")
    if not places.is_shared():
        _removed(lent / snapshot.file_name)


def _unlink(snapshot: slots_pb2.Snapshot, places: Places) -> None:
    """Remove its file from both folders, in whatever state it is there."""
    folders = {places.folder, places.server_folder or places.folder}
    for folder in folders:
        removed = [_removed(folder / f"{snapshot.file_name}{suffix}") for suffix in _SUFFIXES]
        if any(removed):
            sync_folder(folder)


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
