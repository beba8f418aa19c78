"""Records of all kinds, made by chance, and a tenant's records over the contract."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st

from muniment.kit.context import CallContext
from muniment.v1 import records_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.records import ask, import_records, read_changes

__all__ = ["Tenant", "entity", "nothing", "record_lists", "records", "time_of"]

_keys = itertools.count(1)

_NANOSECONDS = 1_000_000_000
_YEAR_9999_SECONDS = 253402300799


def nothing(step: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def time_of(seconds: int, nanoseconds: int = 0) -> Timestamp:
    """A moment."""
    return Timestamp(seconds=seconds, nanos=nanoseconds)


def entity(category: str, name: str, body: Any, at: int = 1_700_000_000) -> records_pb2.Record:
    """An entity that was written at that second."""
    return records_pb2.Record(
        entity=records_pb2.Entity(
            id=f"id-{category}-{name}",
            category=category,
            name=name,
            body_json=_compact(body),
            created_at=time_of(at),
            updated_at=time_of(at),
        )
    )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
_times = st.builds(
    time_of,
    st.integers(0, _YEAR_9999_SECONDS),
    st.integers(0, _NANOSECONDS - 1) | st.sampled_from([0, 250_000_000, 1]),
)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_bodies = st.builds(_compact, _values)
_maybe = st.none() | _texts
_entities = st.builds(
    records_pb2.Entity,
    id=_names,
    category=_names,
    name=_names,
    status=_maybe,
    body_json=_bodies,
    created_at=_times,
    updated_at=_times,
)
_states = st.builds(records_pb2.StateDocument, key=_names, body_json=_bodies, updated_at=_times)
_references = st.builds(
    records_pb2.ReferenceDocument,
    key=_names,
    body=_texts,
    metadata_json=st.builds(_compact, st.dictionaries(_texts, _values, max_size=2)),
    updated_at=_times,
)
_events = st.builds(
    records_pb2.JournalEvent,
    id=_names,
    ts=_times,
    evaluated_json=st.none() | _bodies,
    acted_json=st.none() | _bodies,
    forward_json=st.none() | _bodies,
    extra_json=st.none() | _bodies,
)
_archived = st.builds(
    records_pb2.ArchivedEntity, id=_names, entity=_entities, archived_at=_times, reason=_maybe
)

records = st.one_of(
    st.builds(records_pb2.Record, entity=_entities),
    st.builds(records_pb2.Record, state=_states),
    st.builds(records_pb2.Record, reference=_references),
    st.builds(records_pb2.Record, event=_events),
    st.builds(records_pb2.Record, archived=_archived),
)
"""A record of any kind."""


def _named(record: records_pb2.Record) -> tuple[str, ...]:
    kind = record.WhichOneof("record")
    assert kind is not None
    inner = getattr(record, kind)
    if kind == "entity":
        return kind, inner.category, inner.name
    return kind, inner.id if kind in ("event", "archived") else inner.key


record_lists = st.lists(records, max_size=8, unique_by=_named)
"""Records of all kinds, each under a name of its own."""


@dataclass(frozen=True)
class Tenant:
    """Calls on the records of one tenant; each has a key of its own."""

    clients: Clients
    tenant_id: str

    @property
    def context(self) -> CallContext:
        """The context of one call."""
        return CallContext(
            tenant_id=self.tenant_id, caller="test", idempotency_key=f"records-{next(_keys)}"
        )

    async def call(self, name: str, request: Any) -> Any:
        """The call of that name."""
        return await ask(self.clients, self.context, getattr(self.clients.records, name), request)

    async def take(
        self, records: Iterable[records_pb2.Record], *, replace: bool = False
    ) -> records_pb2.ImportRecordsResponse:
        """Import the records."""
        return await import_records(
            self.clients, self.context, records, nothing, replace=replace, source="a test"
        )

    async def changes(self) -> list[records_pb2.RecordChange]:
        """All that changed."""
        pages = read_changes(self.clients, self.context, 0, 0)
        return [change async for page in pages for change in page.changes]
