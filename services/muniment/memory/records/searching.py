"""Search as the service runs it: over a tenant's index, reading each hit's record."""

from __future__ import annotations

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader
from muniment.memory.records.bodies import compact
from muniment.memory.records.entities import find_entity
from muniment.memory.records.journal import event_value
from muniment.memory.records.naming import split_key
from muniment.memory.records.order import counted_down
from muniment.memory.records.reading import Found
from muniment.memory.records.schema import JOURNAL, REFERENCES, STATES
from muniment.memory.records.search import search_records
from muniment.memory.records.tenants import Generation
from muniment.v1 import records_pb2

__all__ = ["search"]


def search(
    reader: Reader, present: Generation, request: records_pb2.SearchRecordsRequest
) -> records_pb2.SearchRecordsResponse:
    """Find records; those that cannot be believed are counted and not shown."""
    tampered = 0

    def load(key: str) -> Found | None:
        nonlocal tampered
        try:
            return _load(reader, key)
        except TamperedError:
            tampered += 1
            return None

    # Before the search: an index that is filled while it is asked may have answered without.
    below = present.index.progress.below
    response = search_records(present.index, load, request, present.dense)
    response.tampered = tampered
    if below:
        _tell_of_filling(response.verdict, below)
    _tell_of_dense(present, response.verdict)
    return response


def _tell_of_filling(verdict: records_pb2.Verdict, below: int) -> None:
    """Say what words could not find, where the index is being made anew."""
    verdict.notes.append(
        f"the index is being made anew; of the oldest {below} writes none is found yet;"
        " ask again in a moment"
    )
    if verdict.code == records_pb2.VERDICT_CODE_EMPTY_STORE:
        verdict.code = records_pb2.VERDICT_CODE_NO_MATCH


def _tell_of_dense(present: Generation, verdict: records_pb2.Verdict) -> None:
    """Say what meaning could not find, where it took part."""
    if present.dense is None or "dense" not in verdict.retrievers:
        return
    follower = present.dense.follower
    if follower.trouble:
        verdict.notes.append(f"the dense index does not get on: {follower.trouble}")
    elif waiting := follower.waiting():
        verdict.notes.append(f"the dense index lacks {waiting} changes; it is catching up")


def _load(reader: Reader, key: str) -> Found | None:
    kind, names = split_key(key)
    if kind == records_pb2.RECORD_KIND_ENTITY:
        stored = find_entity(reader, *names)
        if stored is None:
            return None
        entity = stored.entity
        return Found(kind, entity.name, entity.category, entity.body_json, entity.updated_at)
    if kind == records_pb2.RECORD_KIND_STATE:
        state = reader.get(STATES, *names)
        if state is None:
            return None
        document = state.state
        return Found(kind, document.key, None, document.body_json, document.updated_at)
    if kind == records_pb2.RECORD_KIND_REFERENCE:
        reference = reader.get(REFERENCES, *names)
        if reference is None:
            return None
        text = reference.reference
        return Found(kind, text.key, None, compact("body", text.body), text.updated_at)
    event = reader.get(JOURNAL, counted_down(int(names[0])))
    if event is None:
        return None
    return Found(kind, event.id, None, compact("event", event_value(event)), event.ts)
