"""A search while the index is being made anew says so, and does not say that nothing is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex
from muniment.memory.records.indexing import RecordSource
from muniment.memory.records.searching import search
from muniment.v1 import records_pb2 as pb
from tests.support.records_service import Records

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_is_not_indexed_yet_is_not_called_absent(records: Records) -> None:
    agent = records.agent()
    await agent.remember("places", "harbour", '"by the sea"')
    whole = records.generation(agent)
    index = LexicalIndex(None)
    follower = IndexFollower(index, RecordSource(), fill_in_background=False)
    follower.catch_up(whole.store.read)
    begun = replace(whole, index=index, follower=follower)
    request = pb.SearchRecordsRequest(query="harbour", limit=5)
    with whole.store.read() as reader:
        early = search(reader, begun, request)
        while follower.fill(whole.store.read):
            pass
        late = search(reader, begun, request)
    index.close()
    assert early.verdict.code == pb.VERDICT_CODE_NO_MATCH
    assert any("made anew" in note for note in early.verdict.notes)
    assert [hit.key for hit in late.hits] == ["harbour"]
    assert not late.verdict.notes
