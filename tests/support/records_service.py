"""A records service in the process of the test, and an agent that calls it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import grpc

from muniment.kit.channels import Caller, open_channel
from muniment.kit.context import CallContext
from muniment.kit.ids import IdMaker
from muniment.kit.index.embedding import Embedder
from muniment.kit.interceptors import interceptors
from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.kit.store import Store, StoreOptions
from muniment.memory.records.schema import SCHEMA
from muniment.memory.records.service import RecordsServicer
from muniment.memory.records.tenants import Generation, Tenants
from muniment.memory.records.totals import Cap
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2 as pb
from muniment.v1 import records_pb2_grpc
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.stores import QuickDisk, protection

__all__ = ["DEADLINE_SECONDS", "Agent", "Records", "a_records"]

DEADLINE_SECONDS = 30.0
_MAP_LIMIT_BYTES = 256 * 1024**2
_STEP_NS = 1_000_000

# The asynchronous stub is a type only.
Stub: TypeAlias = "records_pb2_grpc.RecordsServiceAsyncStub"

_keys = itertools.count(1)
_seeds = itertools.count(1)
_tenants = itertools.count(1)


@dataclass(frozen=True)
class Agent:
    """Calls for one tenant. Every call that writes has a key of its own."""

    stub: Stub
    context: CallContext
    caller: Caller

    def with_tenant(self, tenant_id: str) -> Agent:
        """One of another tenant."""
        return replace(self, context=replace(self.context, tenant_id=tenant_id))

    async def ask(self, method: str, *, once: str | None = None, **fields: Any) -> Any:
        """Call the method of that name; `once` is the call's idempotency key."""
        request = getattr(pb, f"{method}Request")(**fields)
        context = replace(self.context, idempotency_key=once or f"key-{next(_keys)}")
        return await self.caller.unary(
            getattr(self.stub, method), request, context, DEADLINE_SECONDS
        )

    async def remember(self, category: str, name: str, body: str = "{}", **more: Any) -> Any:
        """Keep an entity."""
        return await self.ask("Remember", category=category, name=name, body_json=body, **more)

    async def entity(self, category: str, name: str) -> pb.Entity:
        """The entity."""
        found = await self.ask("RecallEntity", category=category, name=name)
        entity: pb.Entity = found.entity
        return entity

    async def forget(self, category: str, name: str, **more: Any) -> str:
        """Move the entity to the archive; its id there."""
        response = await self.ask("Forget", category=category, name=name, **more)
        return str(response.archive_id)

    async def stream(self, method: str, **fields: Any) -> list[Any]:
        """All messages of a streaming read."""
        request = getattr(pb, f"{method}Request")(**fields)
        return [
            page
            async for page in self.caller.server_stream(
                getattr(self.stub, method), request, self.context, DEADLINE_SECONDS
            )
        ]

    async def changes(self, after: int = 0, limit: int = 0) -> list[pb.RecordChange]:
        """What changed."""
        pages = await self.stream("ReadChanges", after_position=after, limit=limit)
        return [change for page in pages for change in page.changes]

    async def position(self) -> int:
        """How far the feed has come."""
        return int((await self.stats()).store.position)

    async def export(self) -> tuple[list[pb.Record], pb.ExportEnd]:
        """Every record, and what they are of."""
        pages = await self.stream("ExportRecords")
        return [record for page in pages for record in page.records], pages[-1].end

    async def take(self, records: Iterable[pb.Record], *, into_next: bool = False) -> Any:
        """Import the records."""
        listed = list(records)

        def parts() -> Iterator[pb.ImportRecordsRequest]:
            header = pb.ImportHeader(replace=into_next, source="test")
            yield pb.ImportRecordsRequest(header=header)
            yield pb.ImportRecordsRequest(records=listed)

        return await self.caller.client_stream(
            self.stub.ImportRecords, parts, self.context, DEADLINE_SECONDS
        )

    async def stats(self) -> pb.GetRecordsStatsResponse:
        """The counts."""
        stats: pb.GetRecordsStatsResponse = await self.ask("GetRecordsStats")
        return stats


@dataclass(frozen=True)
class Records:
    """A service that is up."""

    home: Home
    tenants: Tenants
    stub: Stub
    clock: FakeClock

    def agent(self, tenant_id: str | None = None) -> Agent:
        """An agent of that tenant, or of a new one."""
        name = tenant_id or f"tenant-{next(_tenants)}"
        context = CallContext(tenant_id=name, caller="test")
        return Agent(self.stub, context, Caller("memory"))

    def generation(self, agent: Agent) -> Generation:
        """What the agent's tenant has in force."""
        return self.tenants.of(agent.context.tenant_id)


@asynccontextmanager
async def a_records(
    home: Home,
    *,
    cap_bytes: int | None = None,
    sealed: bool = False,
    seed: int | None = None,
    embedder: Embedder | None = None,
) -> AsyncIterator[Records]:
    """The home's records service, until the block ends. Its clock goes on by 1 ms a reading.

    The seed stands for the home's key: who opens a home again gives the same.
    """
    life = next(_seeds)
    seed = life if seed is None else seed
    clock = FakeClock(step_ns=_STEP_NS)
    # Who is opened later lives later.
    clock.move(3600 * life)

    def open_store(folder: Path) -> Store:
        options = StoreOptions(map_limit_bytes=_MAP_LIMIT_BYTES, clock=clock, disk=QuickDisk())
        return Store(folder, SCHEMA, protection(sealed=sealed, seed=seed), options)

    tenants = Tenants(home.data("memory") / "records", open_store, embedder)
    size = ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES)
    options = [size, ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES)]
    with ThreadPoolExecutor(2) as readers:
        tenants.open_all()
        server = grpc.aio.server(
            interceptors=interceptors(Metrics("memory"), clock), options=options
        )
        stamp = Stamp(clock, IdMaker(clock, SeededRandomness(life)))
        servicer = RecordsServicer(tenants, Cap(cap_bytes), clock, stamp, readers)
        records_pb2_grpc.add_RecordsServiceServicer_to_server(servicer, server)
        with suppress(FileNotFoundError):
            home.socket("memory").unlink()
        server.add_secure_port(
            f"unix:{home.socket('memory')}",
            grpc.local_server_credentials(grpc.LocalConnectionType.UDS),
        )
        await server.start()
        try:
            async with open_channel(home, "memory") as channel:
                yield Records(home, tenants, records_pb2_grpc.RecordsServiceStub(channel), clock)
        finally:
            await server.stop(None)
            tenants.close()
