"""Saving a slot: from the server's file to one of ours that is indexed, checked and durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import LimitError, MunimentError, NotFoundError, PreconditionError
from muniment.kit.files import file_digest
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import Randomness
from muniment.kit.store import Once, Store, Writer
from muniment.slots import snapshots
from muniment.slots.addresses import ServerAddress
from muniment.slots.answers import count_in, milliseconds_in
from muniment.slots.backend import Backend, Found
from muniment.slots.chains import TokenChain
from muniment.slots.contents import Held
from muniment.slots.failures import KeyRefused, Loading, NotSupported, Refused, cannot_be_sealed
from muniment.slots.places import SEALED_SUFFIX, Places, file_trouble
from muniment.slots.removing import KEPT_SUFFIX, Remover
from muniment.slots.retention import Retention
from muniment.slots.save_files import SaveFile, read_save_file
from muniment.slots.sealing import FILE_KEY_BYTES, seal_file
from muniment.slots.told import ToldSlot
from muniment.slots.writing import write
from muniment.v1 import slots_pb2

__all__ = ["Saver"]

_REFUSALS = (Refused, NotSupported, KeyRefused, Loading)
"""Of the server itself, which writes nothing then."""


class _NotYetError(Exception):
    """The call has no outcome yet."""


@dataclass(frozen=True)
class _Kept:
    """A save file where it stays."""

    path: Path | None
    """None where it is out of reach."""
    size_bytes: int = 0
    sha256: bytes = b""
    read: SaveFile | None = None


@dataclass(frozen=True)
class _Save:
    """A save that is under way."""

    backend: Backend
    call: CallContext
    request: slots_pb2.SaveSnapshotRequest
    places: Places
    snapshot: slots_pb2.Snapshot
    key: bytes
    """Of the sealed file; empty where none is sealed."""
    began: float


@dataclass(frozen=True)
class Saver:
    """Saves slots into one index."""

    store: Store
    clock: Clock
    ids: IdMaker
    randomness: Randomness
    retention: Retention
    spare_bytes: int
    remover: Remover
    places: Callable[[Backend], Places]

    @property
    def is_sealing(self) -> bool:
        """Whether save files are encrypted, as all else of the home is."""
        return self.store.protection.sealed

    async def save(
        self, backend: Backend, call: CallContext, request: slots_pb2.SaveSnapshotRequest
    ) -> slots_pb2.SaveSnapshotResponse:
        """Save the call's slot.

        Raises:
            MunimentError: It could not be saved; nothing of it is left, then, or is tried to be
                removed until it is.
        """
        began = self.clock.monotonic()
        async with backend.turn(call.slot_id):
            once = self._once(call, request, _not_yet)
            with suppress(_NotYetError):
                return await write(self.store, once.run)
            found = await backend.ready()
            backend.check_slot(call.slot_id, found)
            told = await backend.idle_slot(call.slot_id)
            # Where it does not tell, as after a restore, the server decides.
            if told is not None and told.prompt_tokens == 0:
                raise _empty(call.slot_id)
            places = self.places(backend)
            await asyncio.to_thread(self._require_sealable, backend.address, places)
            await self._require_room(places, found, told)
            draft, key = self._draft(backend, call, found)
            snapshot = await write(self.store, lambda writer: snapshots.begin(writer, draft, key))
            faults.reach("slots.before_save")
            save = _Save(backend, call, request, places, snapshot, key, began)
            answer = await self._asked(save)
            faults.reach("slots.after_save")
            try:
                response = await self._indexed(save, answer)
            except BaseException:
                removing = self.remover.remove(snapshot.snapshot_id, is_over=True)
                await asyncio.shield(removing)
                raise
            for snapshot_id in response.removed_snapshot_ids:
                response.notes.extend(await self._make_room(snapshot_id))
            faults.reach("slots.before_reply")
            return response

    async def _asked(self, save: _Save) -> dict[str, Any]:
        """The server's answer; where there is none, whatever it has written is removed."""
        name = save.snapshot.file_name
        try:
            with file_trouble("an earlier save file of that name cannot be removed"):
                await asyncio.to_thread(save.places.clear, name)
            return await save.backend.server.act(save.call.slot_id, "save", name)
        except BaseException as error:
            # Whoever has not refused may be at it still, and finish the file later.
            is_over = isinstance(error, _REFUSALS)
            removing = self.remover.remove(save.snapshot.snapshot_id, is_over=is_over)
            await asyncio.shield(removing)
            if isinstance(error, Refused):
                # What it says is the same whatever the cause.
                await asyncio.to_thread(save.places.require_room, 0, self.spare_bytes)
                raise LimitError(
                    f"{error.message}; its folder may be full or not writable",
                    reason="SNAPSHOT_NOT_WRITTEN",
                    fix="see the disk of its --slot-save-path and the log of llama-server",
                ) from error
            raise

    async def _indexed(
        self, save: _Save, answer: Mapping[str, Any]
    ) -> slots_pb2.SaveSnapshotResponse:
        snapshot = save.snapshot
        tokens, written = count_in(answer, "n_saved"), count_in(answer, "n_written")
        if not tokens:
            raise _empty(snapshot.slot_id)
        with file_trouble("the server's save file cannot be taken over"):
            kept = await asyncio.to_thread(self._keep, save, written)
        chain = self._complete(snapshot, tokens, kept)
        notes = await asyncio.to_thread(self._stays, save)

        def change(writer: Writer) -> slots_pb2.SaveSnapshotResponse:
            snapshots.finish(writer, snapshot, chain)
            indexed = [row.snapshot for row in snapshots.snapshots(writer).rows]
            leaving = self.retention.leaving(indexed, self.clock.now_ns())
            return slots_pb2.SaveSnapshotResponse(
                snapshot=snapshot,
                elapsed_ms=round((self.clock.monotonic() - save.began) * 1000),
                server_ms=milliseconds_in(answer, "save_ms"),
                removed_snapshot_ids=leaving,
                notes=notes,
            )

        response = await write(self.store, self._once(save.call, save.request, change).run)
        # It is saved, whatever becomes of the server now.
        with suppress(MunimentError):
            after = await save.backend.slot(snapshot.slot_id)
            if after is not None and not after.is_busy and after.prompt_tokens == tokens:
                held = Held(tokens, chain, snapshot.snapshot_id, True, after.task, tokens)
                save.backend.book.hold(snapshot.slot_id, held)
        return response

    async def _make_room(self, snapshot_id: str) -> list[str]:
        """Remove a snapshot that has to go, and say what stays of it."""
        try:
            why_left = await self.remover.remove(snapshot_id)
        except NotFoundError:  # Somebody else was quicker.
            return []
        except MunimentError as error:
            why_left = error.message
        return [f"{snapshot_id} had to go, and {why_left}"] if why_left else []

    def _require_sealable(self, address: ServerAddress, places: Places) -> None:
        """Let no server of this machine write what a sealed home cannot seal. Runs in a thread.

        Raises:
            PreconditionError: Its file could not be reached.
        """
        if not self.is_sealing or not (address.is_local or address.save_folder):
            return
        setting = address.folder_setting
        fix = (
            f"set `{setting}` to the --slot-save-path of llama-server as it is seen from here, a"
            " whole path that this user can read and write, then run `muniment restart slots`"
        )
        lack = places.out_of_reach()
        if lack is not None:
            raise cannot_be_sealed(f"`{setting}` {lack}", fix)
        with self.store.read() as reader:
            strays = snapshots.out_of_reach(reader, address.name)
        if strays:
            raise cannot_be_sealed(
                f"an earlier one, {strays[0].file_name}, lies in plain where the server writes, and"
                f" `{setting}` did not name that folder",
                f"{fix} and `muniment slots delete {strays[0].snapshot_id}`",
            )

    def _stays(self, save: _Save) -> list[str]:
        """That the file stays with the server, where one would not think so. Runs in a thread."""
        snapshot, address = save.snapshot, save.backend.address
        if snapshot.place == slots_pb2.SNAPSHOT_PLACE_FOLDER:
            return []
        name, setting = snapshot.file_name, address.folder_setting
        if not (address.is_local or address.save_folder):
            told = f"the file {name} stays with the server in plain, though this home is sealed"
            return [told] if self.is_sealing else []
        lack = save.places.out_of_reach() or "names a folder that it is not in"
        mend = f"set `{setting}` to its --slot-save-path and run `muniment restart slots`"
        if self.is_sealing:
            return [
                f"the file {name} stays where the server writes, in plain, though this home is"
                f" sealed: `{setting}` {lack}; {mend}, then `muniment slots delete"
                f" {snapshot.snapshot_id}`"
            ]
        return [
            f"the file {name} stays where the server writes, is not checked, and its name is used"
            f" again: `{setting}` {lack}; {mend}"
        ]

    def _keep(self, save: _Save, written_bytes: int) -> _Kept:
        """Take the server's file into our folder, and look at it. Runs in a thread."""
        places = save.places
        path = places.written(save.snapshot.file_name)
        if path is None:
            return _Kept(None)
        size = path.stat().st_size
        if written_bytes and size != written_bytes:
            raise PreconditionError(
                f"the inference server says that it wrote {written_bytes} bytes, and its file"
                f" has {size}",
                reason="SNAPSHOT_NOT_WRITTEN",
                fix="see the disk of its --slot-save-path and the log of llama-server",
            )
        read = read_save_file(path)
        name = f"{save.snapshot.snapshot_id}{KEPT_SUFFIX}"
        if save.key:
            name += SEALED_SUFFIX
            seal_file(path, places.folder / name, save.key)
            path.unlink()
            path = places.folder / name
        path = places.keep(path, name)
        digest = file_digest(path, lambda done: None)
        return _Kept(path, path.stat().st_size, digest, read)

    def _complete(
        self, snapshot: slots_pb2.Snapshot, tokens: int, kept: _Kept
    ) -> TokenChain | None:
        """Write down what is known now that the file is there."""
        snapshot.tokens = tokens
        if kept.path is None:
            snapshot.place = slots_pb2.SNAPSHOT_PLACE_SERVER
            snapshot.is_sealed = False
            return None
        snapshot.place = slots_pb2.SNAPSHOT_PLACE_FOLDER
        snapshot.file_name, snapshot.file_path = kept.path.name, str(kept.path)
        snapshot.size_bytes, snapshot.sha256 = kept.size_bytes, kept.sha256
        read = kept.read
        if read is None or len(read.tokens) != tokens:
            return None
        if read.kv_type is not None:
            snapshot.kv_type = read.kv_type
        chain = TokenChain.of(read.tokens, snapshot.model.tokenizer)
        snapshot.chain_head = chain.head
        return chain

    def _draft(
        self, backend: Backend, call: CallContext, found: Found
    ) -> tuple[slots_pb2.Snapshot, bytes]:
        snapshot_id = self.ids.new("snap")
        key = self.randomness.token(FILE_KEY_BYTES) if self.is_sealing else b""
        snapshot = slots_pb2.Snapshot(
            snapshot_id=snapshot_id,
            server=backend.address.name,
            slot_id=call.slot_id,
            project_id=call.project_id,
            session_id=call.session_id,
            created_at=timestamp(self.clock),
            model=found.model,
            is_sealed=self.is_sealing,
        )
        return snapshot, key

    async def _require_room(self, places: Places, found: Found, told: ToldSlot | None) -> None:
        """Make sure that the file will have room, going by the newest one of the same model."""

        def newest() -> tuple[int, int]:
            with self.store.read() as reader:
                for row in snapshots.snapshots(reader).rows:
                    one = row.snapshot
                    if one.model.fingerprint == found.model.fingerprint and one.size_bytes:
                        return one.size_bytes, one.tokens
            return 0, 1

        size, tokens = await asyncio.to_thread(newest)
        if told is not None and told.prompt_tokens is not None:
            size = size * told.prompt_tokens // tokens
        # A sealed file lies beside the plain one for a while.
        needed = size * (2 if self.is_sealing else 1)
        await asyncio.to_thread(places.require_room, needed, self.spare_bytes)

    def _once(
        self,
        call: CallContext,
        request: slots_pb2.SaveSnapshotRequest,
        change: Callable[[Writer], slots_pb2.SaveSnapshotResponse],
    ) -> Once[slots_pb2.SaveSnapshotResponse]:
        return Once(call, request, slots_pb2.SaveSnapshotResponse, change, self.clock)


def _not_yet(writer: Writer) -> slots_pb2.SaveSnapshotResponse:
    raise _NotYetError


def _empty(slot_id: int) -> PreconditionError:
    return PreconditionError(
        f"slot {slot_id} of the inference server holds nothing",
        reason="SLOT_EMPTY",
        fix="name the slot that your requests use; `muniment slots show` lists them",
    )
