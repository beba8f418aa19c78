"""What must hold of any store and its index, whatever happened before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import PreconditionError
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.store import Reader, Schema, Store, read_feed, unpack
from muniment.kit.store.chain import chain_hash
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.recall import recall
from muniment.v1 import memory_pb2

__all__ = ["Replica", "answer", "demand_chain", "demand_same_index", "digests"]

_PAGE_CHANGES = 50


@dataclass
class Replica:
    """A reader of the feed: digests of values by table and key, up to a position."""

    incarnation: str = ""
    position: int = 0
    digests: dict[tuple[str, Any], bytes] = field(default_factory=dict)

    def catch_up(self, reader: Reader, schema: Schema) -> None:
        """Read on; where the feed does not reach back, begin with the tables.

        Raises:
            AssertionError: What a change says was there before is not what was there.
        """
        state = reader.state()
        is_foreign = self.incarnation != state.incarnation
        if not is_foreign and self.position < state.floor:
            with pytest.raises(PreconditionError, match="was dropped"):
                read_feed(reader, self.position, _PAGE_CHANGES)
            is_foreign = True
        if is_foreign:
            self.incarnation, self.position = state.incarnation, state.position
            self.digests = digests(reader, schema)
        while self.position < state.position:
            for number, change in read_feed(reader, self.position, _PAGE_CHANGES).changes:
                assert number == self.position + 1
                key = (change.table, unpack(change.key))
                assert self.digests.pop(key, b"") == change.before_sha256
                if change.HasField("after_sha256"):
                    self.digests[key] = change.after_sha256
                self.position = number


def digests(reader: Reader, schema: Schema) -> dict[tuple[str, Any], bytes]:
    """Of every value in a table of the feed, by table and key."""
    found = {}
    for table in schema.tables:
        for address, raw in reader.raw_rows(table) if table.in_feed else ():
            row = reader.open_row(table, address, raw)
            found[table.name, row.key] = hashlib.sha256(row.payload.value).digest()
    return found


def demand_chain(reader: Reader) -> None:
    """Fail where the kept changes do not hang together from the floor to the state."""
    state = reader.state()
    chain, position = state.floor_chain, state.floor
    while position < state.position:
        for number, change in read_feed(reader, position, _PAGE_CHANGES).changes:
            assert number == position + 1
            chain = chain_hash(chain, number, change)
            assert change.chain == chain
            position = number
    assert (position, chain) == (state.position, state.chain)


def demand_same_index(
    store: Store, index: LexicalIndex, context: CallContext, queries: Iterable[str]
) -> None:
    """Fail where a filled index has or answers anything else than one that is made anew."""
    anew = LexicalIndex(None)
    follower = IndexFollower(anew, EpisodesAndPins(), fill_in_background=False)
    follower.catch_up(store.read)
    while follower.fill(store.read):
        pass
    assert index.progress == anew.progress
    assert index.progress.position == store.position
    assert sorted(index.keys()) == sorted(anew.keys())
    with store.read() as reader:
        for query in queries:
            found = answer(reader, index, context, query)
            assert found == answer(reader, anew, context, query), query
    anew.close()


def answer(
    reader: Reader, index: LexicalIndex, context: CallContext, query: str
) -> memory_pb2.RecallResponse:
    """What a recall finds."""
    return recall(reader, index, context, memory_pb2.RecallRequest(query=query, k=5))
