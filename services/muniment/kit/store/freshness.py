"""Which row of a mutable table is the newest: what tells an old row that was put back.

An old row has a good check, so the check alone would believe it. The store remembers, for tables
that are small and in the feed, at which position each key was last written or taken away.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from muniment.kit.store.keys import begins_with
from muniment.kit.store.protection import tampered

__all__ = ["Entry", "Freshness"]

Entry = tuple[int, bool]
"""Position of a change, and whether it left a row."""

_NEVER_WRITTEN: Entry = (0, False)


class Freshness:
    """The newest change by table and address, and the older ones that a reader may still meet.

    A reader sees the store as it was at some position or soon after; what it meets must be the
    newest change up to that position, or one of the later ones.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._reached = 0
        self._reading: Counter[int] = Counter()
        self._changes: defaultdict[str, dict[bytes, list[Entry]]] = defaultdict(dict)

    @contextmanager
    def reading(self) -> Iterator[int]:
        """Keep what a reader that begins now may meet; gives the position that it surely sees."""
        with self._lock:
            seen = self._reached
            self._reading[seen] += 1
        try:
            yield seen
        finally:
            with self._lock:
                self._reading[seen] -= 1
                if not self._reading[seen]:
                    del self._reading[seen]

    def reach(self, position: int) -> None:
        """Say that every reader that begins from now on sees that change."""
        with self._lock:
            self._reached = position

    def learn(self, table: str, address: bytes, position: int, *, present: bool) -> None:
        """Take in a change, before readers can see it."""
        with self._lock:
            changes = self._changes[table].setdefault(address, [])
            if (position, present) not in changes[-1:]:
                changes.append((position, present))
            if len(changes) & (len(changes) - 1) == 0:
                # Only at powers of two: while somebody reads for long there is much to look at.
                oldest = min(self._reading, default=self._reached)
                changes[:] = [one for one in _met(changes, oldest) if one is not _NEVER_WRITTEN]

    def unlearn(self, written: Mapping[tuple[str, bytes], Entry]) -> None:
        """Take back changes whose transaction failed."""
        with self._lock:
            for (table, address), change in written.items():
                changes = self._changes[table][address]
                if change[0] > self._reached:
                    changes.remove(change)
                if not changes:
                    del self._changes[table][address]

    def expects(self, table: str, address: bytes) -> bool:
        """Whether the newest change left a row."""
        with self._lock:
            return self._changes[table].get(address, [_NEVER_WRITTEN])[-1][1]

    def check(self, table: str, address: bytes, position: int | None, seen: int) -> None:
        """Hold a row's position (None for no row) against what is known.

        Raises:
            TamperedError: An older row was put back, or a row taken away.
        """
        with self._lock:
            changes = _met(self._changes[table].get(address, []), seen)
        for change, present in changes:
            if position == change if present else position is None:
                return
        raise tampered(table, address)

    def missing(self, table: str, start: bytes, found: set[bytes], seen: int) -> list[bytes]:
        """Addresses under the prefix where a row should be, of those that were not found."""
        with self._lock:
            return [
                address
                for address, changes in self._changes[table].items()
                if begins_with(address, start)
                and address not in found
                and all(present for _, present in _met(changes, seen))
            ]


def _met(changes: list[Entry], seen: int) -> list[Entry]:
    """The changes that a reader may meet which sees that position or somewhat more."""
    for place in range(len(changes) - 1, -1, -1):
        if changes[place][0] <= seen:
            return changes[place:]
    return [_NEVER_WRITTEN, *changes]
