"""Lanes: the order of one connection's calls.

Calls enter in arrival order. A call waits for the earlier ones of its lane that write what it
touches or read what it writes, and for no others; lanes never wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Lane", "Resource", "Ticket"]


class Resource(Enum):
    """What calls read and write, as far as their order goes."""

    EPISODES = "episodes"
    PINS = "pins"


@dataclass(eq=False)
class Ticket:
    """A call's place in its lane."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]
    earlier: tuple[Ticket, ...]
    """The calls that it waits for."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def must_follow(self, other: Ticket) -> bool:
        """Whether this call has to wait for that earlier one."""
        return bool(other.writes & (self.reads | self.writes) or other.reads & self.writes)


class Lane:
    """The calls of one connection that have not ended."""

    def __init__(self) -> None:
        self._open: list[Ticket] = []

    def enter(self, reads: Iterable[Resource] = (), writes: Iterable[Resource] = ()) -> Ticket:
        """Take the next place. Called in arrival order; the ticket must be passed to `turn`."""
        ticket = Ticket(frozenset(reads), frozenset(writes), earlier=())
        ticket.earlier = tuple(other for other in self._open if ticket.must_follow(other))
        self._open.append(ticket)
        return ticket

    @asynccontextmanager
    async def turn(self, ticket: Ticket) -> AsyncIterator[None]:
        """Wait until it is the call's turn; leaving ends it, however it went.

        A call that is cancelled while it waits gives up its place; those behind it still wait
        for the ones before it.
        """
        try:
            for other in ticket.earlier:
                await other.ended.wait()
            yield
        finally:
            ticket.ended.set()
            self._open.remove(ticket)
