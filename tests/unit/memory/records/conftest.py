"""Records in memory for search; and one records service for all tests, an agent for each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.index.lexical import Document, LexicalIndex, Progress
from muniment.memory.records.meaning import Dense
from muniment.memory.records.naming import index_key, partition_of
from muniment.memory.records.search import Found, search_records
from muniment.memory.records.texts import record_text
from muniment.v1 import records_pb2
from tests.support.homes import a_home
from tests.support.records_service import Agent, Records, a_records

ENTITY = records_pb2.RECORD_KIND_ENTITY
STATE = records_pb2.RECORD_KIND_STATE
JOURNAL = records_pb2.RECORD_KIND_JOURNAL


class Store:
    """Records in memory, and the search over them."""

    def __init__(self) -> None:
        self.index = LexicalIndex(None)
        self.dense: Dense | None = None
        self._found: dict[str, Found] = {}
        self._number = 0

    def remember(self, category: str, name: str, body: Any) -> None:
        self._add(ENTITY, (category, name), body, category)

    def set_state(self, key: str, body: Any) -> None:
        self._add(STATE, (key,), body, None)

    def record_event(self, body: Any) -> None:
        acted = {"evaluated": None, "acted": {"kind": "note", "body": body}}
        self._add(JOURNAL, (str(self._number),), acted, None)

    def lose(self, kind: records_pb2.RecordKind.ValueType, *names: str) -> None:
        """Take the record from the store but not from the index."""
        del self._found[index_key(kind, *names)]

    def search(self, query: str, **fields: Any) -> records_pb2.SearchRecordsResponse:
        request = records_pb2.SearchRecordsRequest(query=query, **fields)
        return search_records(self.index, self._found.get, request, self.dense)

    def keys(self, query: str, **fields: Any) -> list[str]:
        return [hit.key for hit in self.search(query, **fields).hits]

    def code(self, query: str) -> str:
        verdict = self.search(query).verdict
        return records_pb2.VerdictCode.Name(verdict.code).removeprefix("VERDICT_CODE_").lower()

    def _add(
        self,
        kind: records_pb2.RecordKind.ValueType,
        names: tuple[str, ...],
        body: Any,
        category: str | None,
    ) -> None:
        self._number += 1
        if not isinstance(body, dict | list):
            body = {"value": body}
        shown = () if kind == JOURNAL else names
        text = record_text(shown, body, is_event=kind == JOURNAL)
        key = index_key(kind, *names)
        document = Document(
            key,
            text.text,
            partition=partition_of(kind),
            place=self._number,
            number=self._number,
            series=category or "",
            values=text.values,
        )
        self.index.apply([document], Progress(self._number, "test", 0))
        body_json = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        ts = Timestamp(seconds=self._number)
        self._found[key] = Found(kind, names[-1], category, body_json, ts)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def team(store: Store) -> Store:
    """A few records of a team."""
    store.remember("person", "alice-novak", {"role": "backend lead", "city": "Prague"})
    store.remember("person", "bob-lind", {"role": "site engineer", "city": "Gothenburg"})
    store.remember("person", "chen-wei", {"role": "data engineer", "city": "Singapore"})
    store.remember("project", "quarry", {"summary": "data warehouse", "lead": "Chen Wei"})
    store.remember("project", "harbor", {"summary": "booking portal", "lead": "Alice Novak"})
    store.remember("trip", "bergen", {"traveller": "Alice Novak", "by": "train"})
    store.remember("trip", "tokyo", {"traveller": "Bob Lind", "hotel": "Niwa"})
    store.remember("contract", "vega", {"party": "Vega Fruits", "status": "not approved"})
    store.remember("contract", "nordlys", {"party": "Nordlys", "status": "approved"})
    store.remember("server", "k8", {"what": "Kubernetes cluster", "port": 6443})
    store.remember("server", "helsinki-web-1", {"os": "Debian", "backup": "nightly"})
    store.set_state("car", {"plate": "EK 48213", "tyres": "winter set fitted"})
    store.record_event({"text": "Erik planted garlic behind the summer house"})
    return store


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def records() -> AsyncIterator[Records]:
    """A service that tests share. What they do for one tenant is nothing to the others."""
    with a_home() as home:
        async with a_records(home) as records:
            yield records


@pytest.fixture
def agent(records: Records) -> Agent:
    return records.agent()
