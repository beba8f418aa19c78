"""Reading the feed: what changed behind a position, in pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.kit.errors import PreconditionError
from muniment.kit.store.tables import CHANGES
from muniment.kit.store.transaction import Reader, missing_row
from muniment.v1 import store_pb2

__all__ = ["FeedPage", "read_feed"]


@dataclass(frozen=True)
class FeedPage:
    """Changes in order, and where to go on."""

    changes: tuple[tuple[int, store_pb2.StoredChange], ...]
    position: int
    """The position to pass to read on; that which was passed, where nothing was there."""


def read_feed(reader: Reader, after: int, limit: int) -> FeedPage:
    """The next changes behind a position.

    Raises:
        PreconditionError: Changes behind that position were dropped, or the feed has not come so
            far; read the tables instead.
        TamperedError: A change cannot be believed, or is missing.
    """
    state = reader.state()
    if after < state.floor:
        raise PreconditionError(
            f"the feed begins behind position {state.floor}; position {after} was dropped",
            reason="FEED_COMPACTED",
            field="after",
            fix=f"read the tables, then go on from position {state.position}",
        )
    if after > state.position:
        raise PreconditionError(
            f"the feed ends at position {state.position}; position {after} is of another life",
            reason="FEED_SHORTER",
            field="after",
            fix=f"read the tables, then go on from position {state.position}",
        )
    changes = tuple(_changes(reader, after, min(limit, state.position - after)))
    return FeedPage(changes, changes[-1][0] if changes else after)


def _changes(
    reader: Reader, after: int, limit: int
) -> Iterator[tuple[int, store_pb2.StoredChange]]:
    for position in range(after + 1, after + limit + 1):
        change = reader.get(CHANGES, position)
        if change is None:
            raise missing_row(CHANGES, position)
        yield position, change
