"""Saving a slot: from the server's file to one of ours that is indexed, checked and durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import LimitError, NotFoundError, PreconditionError
from muniment.kit.files import file_digest
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import Randomness
from muniment.kit.store import Once, Store, Writer
from muniment.slots import snapshots
from muniment.slots.answers import count_in, milliseconds_in
from muniment.slots.backend import Backend, Found
from muniment.slots.chains import TokenChain
from muniment.slots.contents import Held
from muniment.slots.failures import Dropped, Refused, SlowServer
from muniment.slots.places import SEALED_SUFFIX, Places, file_trouble
from muniment.slots.removing import Remover
from muniment.slots.retention import Retention
from muniment.slots.save_files import SaveFile, read_save_file
from muniment.slots.sealing import FILE_KEY_BYTES, seal_file
from muniment.slots.told import ToldSlot
from muniment.slots.writing import write
from muniment.v1 import slots_pb2

__all__ = ["Saver"]

_SUFFIX = ".slot"


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
            MunimentError: It could not be saved; nothing of it is left, then.
        """
        began = self.clock.monotonic()
        async with backend.turn(call.slot_id):
            once = self._once(call, request, _not_yet)
            with suppress(_NotYetError):
                return await write(self.store, once.run)
            found = await backend.ready()
            backend.check_slot(call.slot_id, found)
            told = await backend.idle_slot(call.slot_id)
            if told is not None and told.prompt_tokens in (None, 0):
                raise _empty(call.slot_id)
            await self._require_room(backend, found, told)
            draft, key = self._draft(backend, call, found)
            snapshot = await write(self.store, lambda writer: snapshots.begin(writer, draft, key))
            faults.reach("slots.before_save")
            try:
                response = await self._saved(backend, call, request, snapshot, key, began)
            except (Dropped, SlowServer):
                # A server that is still at it may finish the file later.
                await self.remover.remove(snapshot.snapshot_id)
                raise
            except BaseException:
                await asyncio.shield(self.remover.discard(snapshot, self.places(backend)))
                raise
            faults.reach("slots.before_reply")
            return response

    async def _saved(
        self,
        backend: Backend,
        call: CallContext,
        request: slots_pb2.SaveSnapshotRequest,
        snapshot: slots_pb2.Snapshot,
        key: bytes,
        began: float,
    ) -> slots_pb2.SaveSnapshotResponse:
        places = self.places(backend)
        answer = await self._ask(backend, call.slot_id, snapshot.file_name, places)
        faults.reach("slots.after_save")
        tokens, written = count_in(answer, "n_saved"), count_in(answer, "n_written")
        if not tokens:
            raise _empty(call.slot_id)
        with file_trouble("the server's save file cannot be taken over"):
            kept = await asyncio.to_thread(self._keep, places, snapshot.file_name, written, key)
        chain = self._complete(snapshot, tokens, kept)
        after = await backend.slot(call.slot_id)
        if after is not None and not after.is_busy and after.prompt_tokens == tokens:
            held = Held(tokens, chain, snapshot.snapshot_id, True, after.task, after.prompt_tokens)
            backend.book.hold(call.slot_id, held)

        def change(writer: Writer) -> slots_pb2.SaveSnapshotResponse:
            snapshots.finish(writer, snapshot, chain)
            indexed = [row.snapshot for row in snapshots.snapshots(writer).rows]
            leaving = self.retention.leaving(indexed, self.clock.now_ns())
            return slots_pb2.SaveSnapshotResponse(
                snapshot=snapshot,
                elapsed_ms=round((self.clock.monotonic() - began) * 1000),
                server_ms=milliseconds_in(answer, "save_ms"),
                removed_snapshot_ids=leaving,
            )

        response = await write(self.store, self._once(call, request, change).run)
        for snapshot_id in response.removed_snapshot_ids:
            with suppress(NotFoundError):  # Somebody else was quicker.
                await self.remover.remove(snapshot_id)
        return response

    async def _ask(
        self, backend: Backend, slot_id: int, name: str, places: Places
    ) -> dict[str, Any]:
        try:
            return await backend.server.act(slot_id, "save", name)
        except Refused as error:
            # What it says is the same whatever the cause.
            await asyncio.to_thread(places.require_room, 0, self.spare_bytes)
            raise LimitError(
                f"{error.message}; its folder may be full or not writable",
                reason="SNAPSHOT_NOT_WRITTEN",
                fix="see the disk of its --slot-save-path and the log of llama-server",
            ) from error

    def _keep(self, places: Places, name: str, written_bytes: int, key: bytes) -> _Kept:
        """Take the server's file into our folder, and look at it. Runs in a thread."""
        path = places.written(name)
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
        if key:
            sealed = places.folder / f"{name}{SEALED_SUFFIX}"
            seal_file(path, sealed, key)
            path.unlink()
            path = sealed
        path = places.keep(path)
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
        is_far = not backend.address.is_local and not backend.address.save_folder
        key = self.randomness.token(FILE_KEY_BYTES) if self.is_sealing else b""
        snapshot = slots_pb2.Snapshot(
            snapshot_id=snapshot_id,
            server=backend.address.name,
            slot_id=call.slot_id,
            project_id=call.project_id,
            session_id=call.session_id,
            created_at=timestamp(self.clock),
            model=found.model,
            file_name="" if is_far else snapshot_id + _SUFFIX,
            is_sealed=self.is_sealing,
        )
        return snapshot, key

    async def _require_room(self, backend: Backend, found: Found, told: ToldSlot | None) -> None:
        """Make sure that the file will have room, going by the newest one of the same model."""

        def newest() -> tuple[int, int]:
            with self.store.read() as reader:
                for row in snapshots.snapshots(reader).rows:
                    one = row.snapshot
                    if one.model.fingerprint == found.model.fingerprint and one.size_bytes:
                        return one.size_bytes, one.tokens
            return 0, 1

        size, tokens = await asyncio.to_thread(newest)
        needed = size * (told.prompt_tokens or 0 if told else tokens) // tokens
        # A sealed file lies beside the plain one for a while.
        needed *= 2 if self.is_sealing else 1
        places = self.places(backend)
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
