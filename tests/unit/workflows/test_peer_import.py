"""What was taken over is compared with what is there, record by record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from muniment.kit.errors import PreconditionError
from muniment.v1 import records_pb2
from muniment.workflows import peer_import
from muniment.workflows.clients import Clients
from muniment.workflows.peer_import import PeerRecords, import_peer
from muniment.workflows.peer_store import PeerStore, open_peer_store
from tests.support.memory_process import a_memory_home
from tests.support.peer_stores import TENANT, fill_peer_store, make_peer_store
from tests.support.records import Tenant, entity, nothing


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    with a_memory_home() as home:
        async with home.open_here() as caller:
            yield caller.clients


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PeerStore]:
    path = make_peer_store(tmp_path / "memory.db")
    fill_peer_store(path)
    with open_peer_store(path, tmp_path) as store:
        yield store


async def take(clients: Clients, store: PeerStore) -> tuple[int, int]:
    """How many were kept as they were, and how many were verified."""
    records = PeerRecords.look_through(store, TENANT, nothing)
    context = Tenant(clients, "here").context
    response, verified = await import_peer(clients, context, records, nothing, source="test")
    return response.kept_total, verified


async def test_all_is_verified(clients: Clients, store: PeerStore) -> None:
    assert await take(clients, store) == (0, 6)
    assert await take(clients, store) == (0, 6)


async def test_what_was_kept_is_no_fault(clients: Clients, store: PeerStore) -> None:
    await Tenant(clients, "here").take([entity("people", "ann", "mine")])
    assert await take(clients, store) == (1, 5)


async def test_what_is_missing_or_different_is_a_fault(
    clients: Clients, store: PeerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lossy(
        clients: Clients, context: object, records: PeerRecords, *rest: object, **named: object
    ) -> records_pb2.ImportRecordsResponse:
        some = [one for one in records if one.WhichOneof("record") != "state"]
        some[0].entity.body_json = "{}"
        return await Tenant(clients, "here").take(some)

    monkeypatch.setattr(peer_import, "import_records", lossy)
    with pytest.raises(PreconditionError) as caught:
        await take(clients, store)
    assert caught.value.reason == "IMPORT_UNVERIFIED"
    assert "entity people/ann, state plan" in caught.value.message
