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
    RECORDS = "records"
    SLOT = "slot"
    CODE = "code"


@dataclass(eq=False)
class Ticket:
    """A call's place in its lane."""

    reads: frozenset[Resource]
    writes: frozenset[Resource]
    earlier: frozenset[Ticket] = frozenset()
    """The newest calls that it waits for; these wait for those before them. Empty from its turn on.
    """
    begun: bool = False
    """Whether its turn has come."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def must_follow(self, other: Ticket) -> bool:
        """Whether this call has to wait for that earlier one."""
        return bool(other.writes & (self.reads | self.writes) or other.reads & self.writes)


class Lane:
    """The calls of one connection that have not ended."""

    def __init__(self) -> None:
        self._writer: dict[Resource, Ticket] = {}
        """The newest call that writes the resource."""
        self._readers: dict[Resource, set[Ticket]] = {one: set() for one in Resource}
        """Those that read it and have entered since."""

    def enter(self, reads: Iterable[Resource] = (), writes: Iterable[Resource] = ()) -> Ticket:
        """Take the next place. Called in arrival order; the ticket is passed to `turn`.

        Costs the same however many calls wait.
        """
        ticket = Ticket(frozenset(reads), frozenset(writes))
        earlier: set[Ticket] = set()
        for resource in ticket.reads | ticket.writes:
            if resource in self._writer:
                earlier.add(self._writer[resource])
        for resource in ticket.reads - ticket.writes:
            self._readers[resource].add(ticket)
        for resource in ticket.writes:
            earlier |= self._readers[resource]
            self._readers[resource].clear()
            self._writer[resource] = ticket
        ticket.earlier = frozenset(earlier)
        return ticket

    @asynccontextmanager
    async def turn(self, ticket: Ticket) -> AsyncIterator[None]:
        """Wait until it is the call's turn; leaving ends it, however it went.

        A call that is cancelled while it waits gives up its place; those behind it still wait
        for the ones before it.
        """
        try:
            await _all_ended(ticket)
            ticket.earlier = frozenset()
            ticket.begun = True
            yield
        finally:
            self.leave(ticket)

    def leave(self, ticket: Ticket) -> None:
        """End a call; only one that was never passed to `turn` needs this."""
        ticket.ended.set()
        for resource in ticket.reads:
            self._readers[resource].discard(ticket)
        if ticket.begun:
            for resource in ticket.writes:
                if self._writer.get(resource) is ticket:
                    del self._writer[resource]


async def _all_ended(ticket: Ticket) -> None:
    """Wait for what is before the ticket."""
    awaited: set[Ticket] = set()
    waiting = set(ticket.earlier)
    while waiting:
        other = waiting.pop()
        await other.ended.wait()
        awaited.add(other)
        # One that gave up its place leaves those that it waited for to the ones behind it.
        waiting |= {one for one in other.earlier - awaited if ticket.must_follow(one)}
