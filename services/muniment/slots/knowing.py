"""What was found out about servers: by probes, and by what restores turned out to be worth.

It holds for one build, model, settings and run of a server, and is kept in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import TamperedError
from muniment.kit.store import Store, Writer
from muniment.slots import snapshots
from muniment.slots.limits import WORTH_KEPT
from muniment.slots.models import KIN_BYTES
from muniment.slots.schema import PROBES
from muniment.slots.writing import write
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["Knowledge", "Known"]

_Standing: TypeAlias = "slots_pb2.Standing.ValueType"

_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Known:
    """What is known of one server as it is now."""

    is_probed: bool
    capabilities: Sequence[slots_pb2.Capability] = ()
    worth: Sequence[slots_pb2.RestoreWorth] = ()
    """In the order in which it was measured."""
    earlier: slots_pb2.RestoreWorth | None = None
    """The last measure of an earlier run of the server."""

    def all_capabilities(self) -> list[slots_pb2.Capability]:
        """What probes and use have shown."""
        prefix = list(self.capabilities) or [
            slots_pb2.Capability(
                kind=slots_pb2.CAPABILITY_KIND_PREFIX_REUSE,
                standing=slots_pb2.STANDING_NOT_KNOWN,
                detail="was not tried",
                fix="run `muniment slots probe` while a slot is unused",
            )
        ]
        return [*prefix, self._restore_reuse()]

    def restore_outlook(self) -> str:
        """What the next prompt after a restore can expect, in words."""
        reuse = self._restore_reuse()
        match reuse.standing:
            case slots_pb2.STANDING_YES:
                return f"restores are worth it on this server: {reuse.detail}"
            case slots_pb2.STANDING_NO:
                return (
                    f"expect the whole prompt to be evaluated again: on this server {reuse.detail}"
                )
            case _:
                return f"what a restore brings on this server is not known: {reuse.detail}"

    def _restore_reuse(self) -> slots_pb2.Capability:
        standing, detail = self._restore_standing()
        fix = None
        if standing == slots_pb2.STANDING_NO:
            fix = "start llama-server with --ctx-checkpoints 32 or --swa-full"
        elif standing == slots_pb2.STANDING_NOT_KNOWN:
            fix = "run `muniment slots probe` while a slot is unused"
        return slots_pb2.Capability(
            kind=slots_pb2.CAPABILITY_KIND_RESTORE_REUSE, standing=standing, detail=detail, fix=fix
        )

    def _restore_standing(self) -> tuple[_Standing, str]:
        probes = [one for one in self.worth if one.source == slots_pb2.WORTH_SOURCE_PROBE]
        uses = [one for one in self.worth if one.source != slots_pb2.WORTH_SOURCE_PROBE]
        good = max((one for one in self.worth if _is_good(one)), default=None, key=_length)
        poor = max((one for one in uses if not _is_good(one)), default=None, key=_length)
        probe = max(probes, default=None, key=_length)
        if good is not None and (poor is None or _length(poor) <= _length(good)):
            return slots_pb2.STANDING_YES, _told(good)
        if probe is not None and not _is_good(probe):
            return slots_pb2.STANDING_NO, _told(probe)
        if poor is not None:
            # That prompt may have been another one.
            return slots_pb2.STANDING_NOT_KNOWN, _told(poor)
        if self.earlier is not None:
            told = f"not measured since it was started anew; before that {_told(self.earlier)}"
            return slots_pb2.STANDING_NOT_KNOWN, told
        return slots_pb2.STANDING_NOT_KNOWN, "it was not measured"


@dataclass(frozen=True)
class Knowledge:
    """Keeps what is found out."""

    store: Store
    clock: Clock

    @property
    def is_sealed(self) -> bool:
        """Whether the home is."""
        return self.store.protection.sealed

    def home(self) -> str:
        """What tells this home from others that use the same servers. Reads the store."""
        with self.store.read() as reader:
            return snapshots.home_mark(reader)

    async def of(self, server: str, subject: bytes) -> Known:
        """What is known of the server as it is now."""

        def read() -> Known:
            with self.store.read() as reader:
                try:
                    row = reader.get(PROBES, server)
                except TamperedError:
                    row = None
            if row is None:
                return Known(is_probed=False)
            if row.subject != subject:
                return Known(is_probed=False, earlier=_earlier(row, subject))
            earlier = row.earlier if row.HasField("earlier") else None
            is_probed = row.HasField("probed_at")
            return Known(is_probed, row.capabilities, row.restore_worth, earlier)

        return await asyncio.to_thread(read)

    async def learn(
        self, server: str, subject: bytes, worth: slots_pb2.RestoreWorth, snapshot_id: str
    ) -> None:
        """Keep what a restore of that snapshot was worth."""

        def change(writer: Writer) -> None:
            row = _row(writer, server, subject)
            row.restore_worth.append(worth)
            del row.restore_worth[:-WORTH_KEPT]
            writer.put(PROBES, server, value=row)
            snapshots.note_worth(writer, snapshot_id, worth)

        await write(self.store, change)

    async def keep_probe(
        self,
        server: str,
        subject: bytes,
        capability: slots_pb2.Capability,
        worth: slots_pb2.RestoreWorth | None,
    ) -> None:
        """Keep what a probe has found."""

        def change(writer: Writer) -> None:
            row = _row(writer, server, subject)
            del row.capabilities[:]
            row.capabilities.append(capability)
            if worth is not None:
                row.restore_worth.append(worth)
                del row.restore_worth[:-WORTH_KEPT]
            row.probed_at.CopyFrom(timestamp(self.clock))
            writer.put(PROBES, server, value=row)

        await write(self.store, change)


def _row(writer: Writer, server: str, subject: bytes) -> store_pb2.StoredProbe:
    """The server's row, begun anew where it is of something else that was served."""
    try:
        row = writer.get(PROBES, server)
    except TamperedError:
        row = None
    if row is None:
        return store_pb2.StoredProbe(subject=subject)
    if row.subject != subject:
        return store_pb2.StoredProbe(subject=subject, earlier=_earlier(row, subject))
    return row


def _earlier(row: store_pb2.StoredProbe, subject: bytes) -> slots_pb2.RestoreWorth | None:
    """The last measure of an earlier run, if nothing else is seen to be different."""
    if row.subject[:KIN_BYTES] != subject[:KIN_BYTES]:
        return None
    if row.restore_worth:
        return row.restore_worth[-1]
    return row.earlier if row.HasField("earlier") else None


def _length(worth: slots_pb2.RestoreWorth) -> int:
    return min(worth.restored_tokens, worth.prompt_tokens)


def _is_good(worth: slots_pb2.RestoreWorth) -> bool:
    return worth.reused_tokens >= _NEARLY_ALL * _length(worth) > 0


def _told(worth: slots_pb2.RestoreWorth) -> str:
    how = (
        "in a probe"
        if worth.source == slots_pb2.WORTH_SOURCE_PROBE
        else "in the request after the restore, which may have had another prompt"
        if not _is_good(worth)
        else "in the request after the restore"
    )
    return (
        f"{worth.reused_tokens} of {worth.restored_tokens} restored tokens were reused for a"
        f" prompt of {worth.prompt_tokens}, {how}"
    )
