"""One inference server: how it fares, what it serves, and what it says that it can do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.slots.addresses import ServerAddress
from muniment.slots.answers import count_of
from muniment.slots.contents import SlotBook
from muniment.slots.failures import (
    KeyRefused,
    Loading,
    NoServer,
    NotNamed,
    NotSupported,
    NotUnderstood,
    Refused,
    Sleeping,
    Unreachable,
    slot_busy,
)
from muniment.slots.llama import SLOT_FLAG, LlamaServer
from muniment.slots.models import MOST_SLOTS, Seen, fingerprint_of, seen_in, subject_of
from muniment.slots.tokens import TokenCounter
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

__all__ = ["Backend", "Found"]

_NO_FILE = "../none"
"""A name that the server refuses, after it has looked whether it saves at all."""

_BUSY_SECONDS = 5.0
"""How long a slot that is busy is waited for."""
_BUSY_PAUSE_SECONDS = 0.1

_Condition: TypeAlias = "slots_pb2.ServerCondition.ValueType"
_Kind: TypeAlias = "slots_pb2.CapabilityKind.ValueType"

_CONDITIONS: tuple[tuple[type[MunimentError], _Condition], ...] = (
    (Loading, slots_pb2.SERVER_CONDITION_LOADING),
    (Sleeping, slots_pb2.SERVER_CONDITION_SLEEPING),
    (KeyRefused, slots_pb2.SERVER_CONDITION_KEY_REFUSED),
    (NotUnderstood, slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD),
    (Refused, slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD),
    (NotSupported, slots_pb2.SERVER_CONDITION_NOT_UNDERSTOOD),
)

_SLOTS, _METRICS = slots_pb2.CAPABILITY_KIND_SLOTS, slots_pb2.CAPABILITY_KIND_METRICS
_SAVE, _RESTORE = slots_pb2.CAPABILITY_KIND_SAVE, slots_pb2.CAPABILITY_KIND_RESTORE

_log = structlog.get_logger()


@dataclass(frozen=True)
class Found:
    """A server that was found ready."""

    seen: Seen
    model: slots_pb2.ServedModel
    told: tuple[slots_pb2.Capability, ...]
    """What it can do, as far as it says so when it is asked."""

    @property
    def subject(self) -> bytes:
        """What that which is found out about it holds for."""
        return subject_of(self.model, self.seen)


class Backend:
    """One server, looked at anew whenever something depends on it."""

    def __init__(self, address: ServerAddress, clock: Clock) -> None:
        self.address = address
        self.server = LlamaServer(address)
        self.tokens = TokenCounter(address, self.server)
        self.book = SlotBook()
        self._clock = clock
        self._found: Found | None = None
        self._ready_at: Timestamp | None = None
        self._condition: _Condition = slots_pb2.SERVER_CONDITION_UNSPECIFIED
        self._slot_turns: dict[int, asyncio.Lock] = {}
        self._run: str | None = None
        self._was_away = False
        self._runs_seen = 0

    @property
    def runs_seen(self) -> int:
        """How many runs of the server began while this service looked on.

        At 0 its slots may hold what was restored into them before this service was started.
        """
        return self._runs_seen

    async def close(self) -> None:
        """Close its connections."""
        await self.server.close()

    async def ready(self) -> Found:
        """What is served now.

        Raises:
            MunimentError: The server is not ready, and why.
        """
        try:
            found = await self._look()
        except MunimentError as error:
            self._note(_condition(error))
            # One that loads its model has just begun.
            is_away = isinstance(error, Unreachable) and error.nothing_is_there
            self._was_away |= is_away or isinstance(error, Loading)
            if isinstance(error, Unreachable) and not self.address.is_configured:
                raise NoServer from None
            raise
        self._note(slots_pb2.SERVER_CONDITION_READY)
        self._ready_at = timestamp(self._clock)
        return found

    async def describe(self, *, is_usual: bool) -> tuple[slots_pb2.Server, Found | None]:
        """The server as it is found now."""
        server = slots_pb2.Server(name=self.address.name, url=self.address.url, is_usual=is_usual)
        found: Found | None = None
        try:
            found = await self.ready()
            server.condition = slots_pb2.SERVER_CONDITION_READY
        except MunimentError as error:
            server.condition = _condition(error)
            server.detail, server.fix = error.message, error.fix or ""
        if self._found is not None:
            server.model.CopyFrom(self._found.model)
            server.capabilities.extend(self._found.told)
        if self._ready_at is not None:
            server.ready_at.CopyFrom(self._ready_at)
        return server, found

    async def ready_for_texts(self) -> Found:
        """The same, for who sends it what was said: anybody may listen at a default address.

        Raises:
            PreconditionError: Nobody named the server.
            MunimentError: As `ready`.
        """
        found = await self.ready()
        if not self.address.is_configured:
            raise NotNamed(self.address.url)
        return found

    async def slots(self) -> list[ToldSlot]:
        """Its slots as it tells of them now."""
        told = await self.server.slots()
        ids = {count_of(one.get("id")) for one in told}
        if len(ids) != len(told) or not all(one is not None and one < MOST_SLOTS for one in ids):
            raise NotUnderstood(self.address.url, "/slots does not number its slots")
        return [ToldSlot.of(one) for one in told]

    async def slot(self, slot_id: int) -> ToldSlot | None:
        """One of them; None where the server does not list its slots."""
        try:
            told = await self.slots()
        except NotSupported:
            return None
        return next((one for one in told if one.slot_id == slot_id), None)

    async def idle_slot(self, slot_id: int) -> ToldSlot | None:
        """The same, once it is not busy.

        Raises:
            PreconditionError: It stays busy.
        """
        end = self._clock.monotonic() + _BUSY_SECONDS
        while (told := await self.slot(slot_id)) is not None and told.is_busy:
            if self._clock.monotonic() >= end:
                owner = self.book.session_of(slot_id)
                whose = f", last named by session {owner}" if owner else ""
                raise slot_busy(slot_id, whose)
            await asyncio.sleep(_BUSY_PAUSE_SECONDS)
        return told

    def turn(self, slot_id: int) -> asyncio.Lock:
        """What is held by who has the slot to itself, as far as this service goes."""
        return self._slot_turns.setdefault(slot_id, asyncio.Lock())

    def check_slot(self, slot_id: int, found: Found) -> None:
        """Refuse a slot that the server does not have; it would take any number.

        Raises:
            InvalidArgumentError: It has no such slot.
        """
        if slot_id >= found.model.slots:
            raise InvalidArgumentError(
                f"is {slot_id}, and the inference server {self.address.name} has slots 0 to"
                f" {found.model.slots - 1}",
                reason="SLOT_UNKNOWN",
                field="slot_id",
                fix="use one of these, or start llama-server with a greater --parallel",
            )

    async def _look(self) -> Found:
        await self.server.health()
        seen = seen_in(await self.server.props())
        if seen is None:
            raise NotUnderstood(self.address.url, "its /props are not those of llama-server")
        if seen.is_sleeping:
            raise Sleeping(self.address.url)
        self._note_run(seen.run)
        known = self._found
        # Without a mark of the run nobody can tell whether the server was restarted.
        if known is not None and known.seen == seen and seen.run:
            return known
        meta = await self.server.models()
        counted = await self.tokens.count([])
        model = slots_pb2.ServedModel(
            name=seen.name,
            fingerprint=await asyncio.to_thread(
                fingerprint_of, seen, meta, is_local=self.address.is_local
            ),
            build=seen.build,
            slots=seen.slots,
            slot_context_tokens=seen.context_tokens,
            tokenizer=counted.tokenizer,
        )
        told = known.told if known is not None and known.seen == seen else await self._ask(seen)
        if known is not None and known.model.fingerprint != model.fingerprint:
            _log.info("the server serves another model", server=self.address.name)
        self._found = Found(seen, model, told)
        self.book.begin_run((model.fingerprint, seen), self._runs_seen)
        return self._found

    async def _ask(self, seen: Seen) -> tuple[slots_pb2.Capability, ...]:
        """What it can do, asked in ways that change nothing."""
        lists = await self._lists() if seen.has_slots is None else seen.has_slots
        saves = await self._saves()
        metrics = await self.server.has_metrics()
        # It may well restore what it cannot be made to save, but both are of one flag.
        return (
            _told(_SLOTS, lists, "lists its slots", "does not list its slots", "--slots"),
            _told(slots_pb2.CAPABILITY_KIND_TOKENIZE, True, "counts tokens"),
            _told(slots_pb2.CAPABILITY_KIND_TEMPLATE, True, "applies its chat template"),
            _told(_METRICS, metrics, "tells its metrics", "does not tell its metrics", "--metrics"),
            _told(_SAVE, saves, "saves slots", "does not save slots", SLOT_FLAG),
            _told(_RESTORE, saves, "restores slots", "does not restore slots", SLOT_FLAG),
        )

    async def _lists(self) -> bool:
        try:
            await self.server.slots()
        except NotSupported:
            return False
        return True

    async def _saves(self) -> bool:
        try:
            with suppress(Refused):
                await self.server.act(0, "restore", _NO_FILE)
        except NotSupported:
            return False
        return True

    def _note_run(self, run: str) -> None:
        """Count the run if it was seen to begin: by its mark, or since nobody listened before."""
        is_same = run == self._run if run else not self._was_away
        if not is_same and (self._run or self._was_away):
            self._runs_seen += 1
        self._run, self._was_away = run, False

    def _note(self, condition: _Condition) -> None:
        if condition != self._condition:
            name = slots_pb2.ServerCondition.Name(condition).removeprefix("SERVER_CONDITION_")
            _log.info("server", server=self.address.name, condition=name.lower())
            self._condition = condition


def _told(
    kind: _Kind, can: bool, does: str, does_not: str = "", flag: str = ""
) -> slots_pb2.Capability:
    return slots_pb2.Capability(
        kind=kind,
        standing=slots_pb2.STANDING_YES if can else slots_pb2.STANDING_NO,
        detail=does if can else does_not,
        fix=None if can else f"start llama-server with {flag}",
    )


def _condition(error: MunimentError) -> _Condition:
    for kind, condition in _CONDITIONS:
        if isinstance(error, kind):
            return condition
    return slots_pb2.SERVER_CONDITION_UNREACHABLE
