"""State documents: one value per key."""

from __future__ import annotations

from muniment.kit.errors import NotFoundError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.records.order import next_order
from muniment.memory.records.schema import STATES
from muniment.memory.records.totals import Cap, add_to_totals, size_of_state
from muniment.v1 import records_pb2, store_pb2

__all__ = ["delete_state", "known_state", "list_states", "put_state"]

_KIND = records_pb2.RECORD_KIND_STATE


def put_state(writer: Writer, cap: Cap, state: records_pb2.StateDocument) -> bool:
    """Keep the document in the place of the one before; whether there was none.

    Raises:
        LimitError: The tenant's cap.
    """
    try:
        before = writer.get(STATES, state.key)
    except TamperedError:
        before = None
    stored = store_pb2.StoredStateDocument(state=state, order=next_order(writer))
    writer.put(STATES, state.key, value=stored)
    grown = size_of_state(state) - (size_of_state(before.state) if before else 0)
    add_to_totals(writer, cap, grown_bytes=grown, kind=_KIND, count=0 if before else 1)
    return before is None


def known_state(reader: Reader, keys: list[str]) -> records_pb2.StateDocument:
    """The document of one of these keys, likeliest first.

    Raises:
        NotFoundError: There is none.
        TamperedError: It cannot be believed.
    """
    for key in keys:
        stored = reader.get(STATES, key)
        if stored is not None:
            return stored.state
    raise NotFoundError(f"state {keys[0]:.100} not found", reason="RECORD_UNKNOWN")


def list_states(reader: Reader) -> records_pb2.ListStatesResponse:
    """All documents without their bodies, by key."""
    response = records_pb2.ListStatesResponse()
    for _, stored in reader.survey(STATES):
        if isinstance(stored, TamperedError):
            response.tampered += 1
        else:
            response.states.add(key=stored.state.key, updated_at=stored.state.updated_at)
    # In a sealed store keys are in no order.
    response.states.sort(key=lambda state: state.key)
    return response


def delete_state(writer: Writer, keys: list[str]) -> None:
    """Take the document away.

    Raises:
        NotFoundError: There is none.
    """
    state = known_state(writer, keys)
    writer.delete(STATES, state.key)
    add_to_totals(writer, Cap(None), grown_bytes=-size_of_state(state), kind=_KIND, count=-1)
