"""Removing snapshots: the file first, then what is known of it; and what crashes left behind.

What cannot be removed stays known, and is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.files import sync_folder
from muniment.kit.store import Once, Store, Writer
from muniment.slots import snapshots
from muniment.slots.places import PLAIN_SUFFIX, SEALED_SUFFIX, Places, recorded_folder
from muniment.slots.turns import SnapshotTurns
from muniment.slots.writing import write
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["KEPT_SUFFIX", "Remover"]

KEPT_SUFFIX = ".slot"
"""Of a file in our folder, behind the snapshot's id."""

_LONGEST_SAVE_NS = 1800 * 1_000_000_000

_log = structlog.get_logger()


@dataclass(frozen=True)
class _Removal:
    """What became of a snapshot's file."""

    why_left: str = ""
    """Empty where nothing of it is left."""
    is_final: bool = True
    """There is nothing to try again."""


@dataclass(frozen=True)
class Remover:
    """Removes snapshots of one index."""

    store: Store
    clock: Clock
    places_of: Callable[[str], Places]
    """The folders of the server of that name; ours alone where it is known no more."""
    turns: SnapshotTurns = field(default_factory=SnapshotTurns)
    _told: set[str] = field(default_factory=set)
    """Snapshots of which the log says already that their files stay."""

    async def remove(self, snapshot_id: str, *, is_over: bool = False) -> str:
        """Remove a snapshot, and say why its file stays, if it does.

        One that its server may be writing yet, unless that `is_over`, is looked for again.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        async with self.turns.of(snapshot_id):
            row = await write(
                self.store, lambda writer: snapshots.leave(writer, snapshot_id, is_over=is_over)
            )
            return (await self._finish(row)).why_left

    async def remove_once(
        self, call: CallContext, request: slots_pb2.DeleteSnapshotRequest
    ) -> slots_pb2.DeleteSnapshotResponse:
        """The same, as a caller asks for it: once for its key.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        snapshot_id = request.snapshot_id

        def change(writer: Writer) -> slots_pb2.DeleteSnapshotResponse:
            row = snapshots.leave(writer, snapshot_id)
            is_here = row.snapshot.place != slots_pb2.SNAPSHOT_PLACE_SERVER
            # What a repeated call is told if the file went meanwhile.
            return slots_pb2.DeleteSnapshotResponse(file_removed=is_here)

        once = Once(call, request, slots_pb2.DeleteSnapshotResponse, change, self.clock)
        async with self.turns.of(snapshot_id):
            response = await write(self.store, once.run)
            faults.reach("slots.before_remove")
            row = await asyncio.to_thread(self._leaving, snapshot_id)
            if row is None:
                return response
            why_left = (await self._finish(row)).why_left
            return slots_pb2.DeleteSnapshotResponse(
                file_removed=not why_left, note=why_left or None
            )

    async def settle(self, *, is_start: bool) -> None:
        """Finish what was cut short: what was leaving, goes; at the start what was begun, too."""

        def left() -> list[store_pb2.StoredSnapshot]:
            with self.store.read() as reader:
                if is_start:
                    for row in snapshots.snapshots(reader).rows:
                        places = self.places_of(row.snapshot.server)
                        _take_back(row.snapshot, places, self.store.path)
                return snapshots.unfinished(reader)

        for row in await asyncio.to_thread(left):
            snapshot_id = row.snapshot.snapshot_id
            if row.stage == store_pb2.SNAPSHOT_STAGE_LEAVING:
                async with self.turns.of(snapshot_id):
                    # Somebody else may have been quicker.
                    again = await asyncio.to_thread(self._leaving, snapshot_id)
                    if again is not None:
                        await self._finish(again)
            elif is_start:
                _log.info("a snapshot that was cut short is removed", id=snapshot_id)
                await self.remove(snapshot_id)

    async def _finish(self, row: store_pb2.StoredSnapshot) -> _Removal:
        snapshot = row.snapshot
        removal = await asyncio.to_thread(
            _remove, snapshot, self.places_of(snapshot.server), self.store.path
        )
        if not removal.is_final:
            if snapshot.snapshot_id not in self._told:
                self._told.add(snapshot.snapshot_id)
                _log.warning(
                    "a snapshot's file stays", id=snapshot.snapshot_id, why=removal.why_left
                )
            return removal
        # Until then the server may write the file anew, and it is looked for again.
        written_by = snapshot.created_at.ToNanoseconds() + _LONGEST_SAVE_NS
        if row.was_whole or written_by < self.clock.now_ns():
            await write(self.store, lambda writer: snapshots.discard(writer, snapshot.snapshot_id))
            self._told.discard(snapshot.snapshot_id)
        return removal

    def _leaving(self, snapshot_id: str) -> store_pb2.StoredSnapshot | None:
        with self.store.read() as reader:
            return snapshots.leaving(reader, snapshot_id)


def _take_back(snapshot: slots_pb2.Snapshot, places: Places, store_folder: Path) -> None:
    """Remove what was lent to the server for a restore that a crash cut short."""
    if snapshot.place != slots_pb2.SNAPSHOT_PLACE_FOLDER:
        return
    lent = [places.plain(snapshot.file_name)]
    kept_in = recorded_folder(snapshot, store_folder)
    # What was kept there before another folder was made ours is not lent.
    if places.server_folder is not None and not places.is_servers(kept_in or places.folder):
        lent.append(places.server_folder / snapshot.file_name)
    for path in lent:
        try:
            _removed(path)
        except OSError as error:
            _log.warning("what was lent to the server stays", path=str(path), why=error.strerror)


def _remove(snapshot: slots_pb2.Snapshot, places: Places, store_folder: Path) -> _Removal:
    """Remove its file from wherever we can reach, in whatever state it is. Runs in a thread."""
    kept_in = recorded_folder(snapshot, store_folder)
    folders = [*places.in_reach(), *([] if kept_in is None else [kept_in])]
    is_removed, troubles = False, []
    for path in (folder / name for folder in dict.fromkeys(folders) for name in _names(snapshot)):
        try:
            if _removed(path):
                is_removed = True
                sync_folder(path.parent)
        except OSError as error:
            troubles.append(f"{path}: {error.strerror or error}")
    if troubles:
        return _Removal(
            f"its file cannot be removed and is tried again ({'; '.join(troubles)})", False
        )
    if not is_removed and snapshot.place == slots_pb2.SNAPSHOT_PLACE_SERVER:
        return _Removal(f"its file {snapshot.file_name} is out of reach and stays with the server")
    if not is_removed and kept_in is not None and not kept_in.is_dir():
        return _Removal(f"its file was kept in {kept_in}, which is not there", False)
    return _Removal()


def _names(snapshot: slots_pb2.Snapshot) -> Iterator[str]:
    """All names that the file may have: the server's, ours, and what it is lent as."""
    asked = snapshot.file_name.removesuffix(SEALED_SUFFIX)
    for name in dict.fromkeys((asked, f"{snapshot.snapshot_id}{KEPT_SUFFIX}")):
        yield from (name, f"{name}{SEALED_SUFFIX}", f"{name}{SEALED_SUFFIX}{PLAIN_SUFFIX}")


def _removed(path: Path) -> bool:
    """Whether it was there, and is no more."""
    try:
        # A file system that may not be written to refuses to remove what is not there, too.
        path.lstat()
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
