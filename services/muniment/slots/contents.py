"""What each slot holds and whose it is, as far as this service saw to it.

Kept in memory: the server's own memory does not outlive it either.
"""

from __future__ import annotations

from dataclasses import dataclass

from muniment.slots.chains import TokenChain
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

__all__ = ["Held", "SlotBook"]


@dataclass(frozen=True)
class Held:
    """What a slot was seen to hold, and the marks by which it is seen to hold it still."""

    tokens: int
    chain: TokenChain | None
    snapshot_id: str
    is_confirmed: bool
    """By the server, and not just put there."""
    task: int | None
    prompt_tokens: int | None


class SlotBook:
    """The slots of one server."""

    def __init__(self) -> None:
        self._run: object = None
        self._runs_seen = 0
        self._held: dict[int, Held] = {}
        self._used: set[int] = set()
        self._freed: dict[int, tuple[int | None, int | None]] = {}
        self._sessions: dict[int, str] = {}

    def begin_run(self, run: object, runs_seen: int) -> None:
        """The server is of that run, before which so many were seen to begin.

        What slots of another one held is gone. Which were used in another one is forgotten when a
        run was seen to begin, and not when the server merely says other things of itself.
        """
        if (run, runs_seen) != (self._run, self._runs_seen):
            self._held.clear()
            self._freed.clear()
        if runs_seen != self._runs_seen:
            self._used.clear()
        self._run, self._runs_seen = run, runs_seen

    def is_unused(self, told: ToldSlot) -> bool:
        """Whether nothing was asked of the slot in this run, or nothing since a probe freed it."""
        if told.is_busy or told.slot_id in self._used:
            return False
        freed = self._freed.get(told.slot_id)
        return told.is_fresh or freed == (told.task, told.prompt_tokens)

    def free(self, told: ToldSlot) -> None:
        """A probe has emptied the slot again."""
        self._freed[told.slot_id] = told.task, told.prompt_tokens

    def claim(self, slot_id: int, session_id: str) -> None:
        """A call of that session named this slot."""
        self._used.add(slot_id)
        if session_id:
            self._sessions[slot_id] = session_id

    def session_of(self, slot_id: int) -> str | None:
        """The session whose call named the slot last."""
        return self._sessions.get(slot_id)

    def hold(self, slot_id: int, held: Held) -> None:
        """The slot holds that from now on."""
        self._used.add(slot_id)
        self._held[slot_id] = held

    def forget(self, slot_id: int) -> None:
        """Nothing is known of the slot any more: somebody is about to fill it."""
        self._used.add(slot_id)
        self._held.pop(slot_id, None)

    def held_by(self, told: ToldSlot) -> Held | None:
        """What the slot holds, if nothing has happened to it since that was learnt."""
        held = self._held.get(told.slot_id)
        if held is None or told.is_busy:
            return None
        if (held.task, held.prompt_tokens) != (told.task, told.prompt_tokens):
            return None
        return held

    def content_of(self, told: ToldSlot) -> slots_pb2.SlotContent:
        """The same, as callers are told."""
        held = self.held_by(told)
        if held is None:
            return slots_pb2.SlotContent(basis=slots_pb2.CONTENT_BASIS_NOT_KNOWN)
        return slots_pb2.SlotContent(
            basis=slots_pb2.CONTENT_BASIS_CONFIRMED
            if held.is_confirmed
            else slots_pb2.CONTENT_BASIS_PREDICTED,
            tokens=held.tokens,
            snapshot_id=held.snapshot_id or None,
            chain_head=held.chain.head if held.chain else b"",
        )
