"""Restoring a slot: every check that can be made comes before the server is asked.

A file that was cut aborts the server, and one that was changed is taken without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, MunimentError, PreconditionError
from muniment.kit.store import Store
from muniment.slots import snapshots
from muniment.slots.answers import count_in, milliseconds_in
from muniment.slots.backend import Backend, Found
from muniment.slots.chains import TokenChain
from muniment.slots.contents import Held
from muniment.slots.failures import Refused
from muniment.slots.knowing import Knowledge
from muniment.slots.places import Places, file_trouble, kept_path, require_whole
from muniment.slots.sealing import unseal_file
from muniment.slots.told import ToldSlot
from muniment.slots.turns import SnapshotTurns
from muniment.slots.watching import RestoreWatch
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["Restorer"]

_ID_PREFIX = "snap_"

_log = structlog.get_logger()


@dataclass(frozen=True)
class Restorer:
    """Restores snapshots of one index."""

    store: Store
    clock: Clock
    watch: RestoreWatch
    knowledge: Knowledge
    places: Callable[[Backend], Places]
    turns: SnapshotTurns

    async def restore(
        self, backend: Backend, call: CallContext, snapshot_id: str
    ) -> slots_pb2.RestoreSnapshotResponse:
        """Load the snapshot into the call's slot.

        Raises:
            MunimentError: It was not restored; a slot of a server that was not asked is as before.
        """
        began = self.clock.monotonic()
        async with backend.turn(call.slot_id), self.turns.of(snapshot_id):
            # It may have gone while its turn was waited for.
            row = await asyncio.to_thread(self._find, snapshot_id)
            snapshot = row.snapshot
            _check_server(snapshot, backend)
            found = await backend.ready()
            backend.check_slot(call.slot_id, found)
            _check_fit(snapshot, found)
            before = await backend.idle_slot(call.slot_id)
            chain = await asyncio.to_thread(self._chain, snapshot_id)
            notes = [*_strange(snapshot, call), *_overlap(backend, before, chain)]
            async with self._offered(row, self.places(backend), notes) as name:
                faults.reach("slots.before_restore")
                self.watch.end(backend.address.name, call.slot_id)
                backend.book.forget(call.slot_id)
                answer = await _ask(backend, call.slot_id, name)
            restored = count_in(answer, "n_restored")
            if restored != snapshot.tokens:
                raise PreconditionError(
                    f"the inference server restored {restored} tokens of {snapshot.tokens}",
                    reason="RESTORE_DIFFERS",
                    fix="send the whole prompt: the server evaluates what it does not have",
                )
            # It is restored, even if the server does not say so again.
            with suppress(MunimentError):
                after = await backend.slot(call.slot_id)
                if after is not None and not after.is_busy:
                    self._follow(backend, after, snapshot, chain)
        known = await self.knowledge.of(backend.address.name, found.subject)
        notes.append(known.restore_outlook())
        return slots_pb2.RestoreSnapshotResponse(
            snapshot=snapshot,
            restored_tokens=restored,
            elapsed_ms=round((self.clock.monotonic() - began) * 1000),
            server_ms=milliseconds_in(answer, "restore_ms"),
            notes=notes,
        )

    def find(self, path: str, places: Places) -> store_pb2.StoredSnapshot:
        """The snapshot that the caller means, by its id or its file. Runs in a thread.

        Raises:
            InvalidArgumentError: It is empty, or lies outside the folder.
            NotFoundError: There is no such snapshot.
        """
        if not path:
            raise InvalidArgumentError(
                "is empty",
                reason="PATH_MISSING",
                field="path",
                fix="use the path or the id that session.snapshot gave",
            )
        with self.store.read() as reader:
            if path.startswith(_ID_PREFIX) and "." not in path and "/" not in path:
                return snapshots.find(reader, path)
            row = snapshots.find_by_path(reader, path)
            return row or snapshots.find_by_name(reader, places.name_in(path))

    def _find(self, snapshot_id: str) -> store_pb2.StoredSnapshot:
        with self.store.read() as reader:
            return snapshots.find(reader, snapshot_id)

    def _chain(self, snapshot_id: str) -> TokenChain | None:
        with self.store.read() as reader:
            return snapshots.chain_of(reader, snapshot_id)

    def _follow(
        self,
        backend: Backend,
        after: ToldSlot,
        snapshot: slots_pb2.Snapshot,
        chain: TokenChain | None,
    ) -> None:
        """Remember what the slot holds, and watch what it is worth."""
        held = Held(
            snapshot.tokens, chain, snapshot.snapshot_id, False, after.task, after.prompt_tokens
        )
        backend.book.hold(after.slot_id, held)

        async def measured(worth: slots_pb2.RestoreWorth) -> None:
            found = await backend.ready()
            await self.knowledge.learn(
                backend.address.name, found.subject, worth, snapshot.snapshot_id
            )

        self.watch.begin(backend, after, snapshot.tokens, measured)

    @asynccontextmanager
    async def _offered(
        self, row: store_pb2.StoredSnapshot, places: Places, notes: list[str]
    ) -> AsyncIterator[str]:
        """The name under which the server can read the file, once that is known to be whole."""
        if row.snapshot.place == slots_pb2.SNAPSHOT_PLACE_SERVER:
            yield row.snapshot.file_name
            return
        kept = await asyncio.to_thread(kept_path, row.snapshot, places.folder, self.store.path)
        with file_trouble("the snapshot's file cannot be given to the server"):
            name, lent = await asyncio.to_thread(_prepare, row, kept, places)
        try:
            yield name
        finally:
            if lent is not None:
                try:
                    await asyncio.shield(asyncio.to_thread(lent.unlink, missing_ok=True))
                except OSError as error:
                    # The next start of the service takes it back.
                    stays = f"{lent}, which was lent to the server, stays: {error.strerror}"
                    _log.warning(stays)
                    notes.append(stays)


def _prepare(row: store_pb2.StoredSnapshot, kept: Path, places: Places) -> tuple[str, Path | None]:
    """Check the file, and put it where the server reads. Runs in a thread.

    The name is what the server is asked for; the path is removed afterwards.
    """
    snapshot = row.snapshot
    require_whole(kept, snapshot)
    if not snapshot.is_sealed:
        return kept.name, places.offer(kept)
    plain = places.plain(kept.name)
    plain.unlink(missing_ok=True)
    unseal_file(kept, plain, row.file_key)
    return plain.name, plain


async def _ask(backend: Backend, slot_id: int, name: str) -> dict[str, object]:
    try:
        return await backend.server.act(slot_id, "restore", name)
    except Refused as error:
        raise PreconditionError(
            error.message,
            reason="RESTORE_REFUSED",
            fix="it may be of other cache types, or its file is gone from the server's folder;"
            " send the whole prompt instead",
        ) from error


def _check_server(snapshot: slots_pb2.Snapshot, backend: Backend) -> None:
    """Refuse a server that cannot have the file: what has its name there is another one.

    Raises:
        PreconditionError: Only another server has it.
    """
    name = backend.address.name
    if snapshot.place == slots_pb2.SNAPSHOT_PLACE_SERVER and snapshot.server != name:
        raise PreconditionError(
            f"the snapshot's file lies with the server {snapshot.server}, and {name}"
            " cannot have it",
            reason="SERVER_OTHER",
            fix=f"restore it there (`--server {snapshot.server}`), or save the slot again",
        )


def _check_fit(snapshot: slots_pb2.Snapshot, found: Found) -> None:
    """Refuse what another model or a larger slot has saved.

    Raises:
        PreconditionError: It does not fit what is served.
    """
    model = found.model
    if snapshot.model.fingerprint != model.fingerprint:
        raise PreconditionError(
            f"the snapshot is of the model {snapshot.model.name}"
            f" ({snapshot.model.fingerprint[:8]}), and {model.name} ({model.fingerprint[:8]})"
            " is served",
            reason="MODEL_OTHER",
            fix="start llama-server with that model, or use another snapshot",
        )
    if snapshot.tokens > model.slot_context_tokens:
        raise PreconditionError(
            f"the snapshot has {snapshot.tokens} tokens, and a slot has room for"
            f" {model.slot_context_tokens}",
            reason="CONTEXT_TOO_SMALL",
            fix="start llama-server with a larger --ctx-size, or a smaller --parallel",
        )


def _strange(snapshot: slots_pb2.Snapshot, call: CallContext) -> list[str]:
    """That it is not the caller's own, where that is so."""
    for what, own, saved in (
        ("project", call.project_id, snapshot.project_id),
        ("session", call.session_id, snapshot.session_id),
    ):
        if own and saved and own != saved:
            return [f"it was saved in another {what}, {saved}"]
    return []


def _overlap(backend: Backend, before: ToldSlot | None, chain: TokenChain | None) -> list[str]:
    """What the slot had of it already, as far as that is known."""
    held = backend.book.held_by(before) if before is not None else None
    if held is None or held.chain is None or chain is None:
        return []
    shared = held.chain.shared_tokens(chain)
    if not shared:
        return []
    basis = "confirmed" if held.is_confirmed else "predicted"
    return [f"the slot held the first {shared} of its {chain.tokens} tokens already ({basis})"]
