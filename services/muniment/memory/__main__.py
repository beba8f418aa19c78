"""Starts the memory service: `python -m muniment.memory`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import grpc

from muniment.kit.channels import COUNT_SECONDS, Caller, open_channel
from muniment.kit.clock import Clock, SystemClock
from muniment.kit.context import CallContext
from muniment.kit.counting import estimate_tokens
from muniment.kit.ids import IdMaker
from muniment.kit.index.embedding import MiniLM
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex, open_index
from muniment.kit.maintenance import Keeping, MaintenanceServicer
from muniment.kit.opener import StoreOpener
from muniment.kit.paths import Home
from muniment.kit.progress import Report
from muniment.kit.randomness import SystemRandomness
from muniment.kit.server import Service, described, limits_in, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Store
from muniment.kit.store.bell import CommitBell
from muniment.kit.store.disk import Disk, SystemDisk
from muniment.kit.store.jobs import ThreadedLoop, WriterLoop
from muniment.kit.stores import MEMORY_STORE, RECORDS, hold_stores, records_folder
from muniment.memory import limits
from muniment.memory.counts import Serving
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.migrations import MIGRATIONS
from muniment.memory.purge import Purger
from muniment.memory.records import limits as record_limits
from muniment.memory.records.schema import SCHEMA as RECORDS_SCHEMA
from muniment.memory.records.service import RecordsServicer
from muniment.memory.records.tenants import Tenants
from muniment.memory.records.totals import Cap
from muniment.memory.records.verification import RecordChecks
from muniment.memory.records.writing import Stamp
from muniment.memory.recounting import Counted, Recounter
from muniment.memory.schema import SCHEMA
from muniment.memory.service import MemoryServicer
from muniment.memory.verification import MemoryChecks
from muniment.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    records_pb2,
    records_pb2_grpc,
    slots_pb2,
    slots_pb2_grpc,
)

_READERS = 4

_ASK_SECONDS = 10.0
"""How long the slots service may take to say who serves."""


async def memory_service(
    home: Home, settings: Settings, *, disk: Disk | None = None, loop: WriterLoop | None = None
) -> None:
    """Serve until told to stop, on the machine's disk and in batches unless told otherwise."""
    with hold_stores(home, (MEMORY_STORE,)):
        await _serve(home, settings, disk or SystemDisk(), loop or ThreadedLoop())


async def _serve(home: Home, settings: Settings, disk: Disk, loop: WriterLoop) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    opener = StoreOpener(home, settings, clock, randomness, disk)
    store = opener.store_in(MEMORY_STORE.folder(home), SCHEMA, MIGRATIONS, loop)
    index = open_index(MEMORY_STORE.index(home), sealed=store.protection.sealed)
    follower = IndexFollower(index, EpisodesAndPins())

    def rebuild_index(report: Report) -> int:
        return follower.rebuild_whole(store.read, "indexing", report)

    purger = Purger(store, rebuild_index, clock)
    tenants = Tenants(
        records_folder(home),
        lambda folder: opener.store_in(folder, RECORDS_SCHEMA, {}, ThreadedLoop()),
        MiniLM() if settings.dense == "on" else None,
    )
    try:
        store.follow(follower)
        purger.resume()
        tenants.open_all()
        with ThreadPoolExecutor(_READERS, thread_name_prefix="reader") as readers:
            # The first text has the vocabulary loaded, and nobody should wait for that.
            readers.submit(estimate_tokens, " ")
            ids = IdMaker(clock, randomness)
            bell = CommitBell()
            store.follow(bell)
            serving = Serving()
            servicer = MemoryServicer(
                store, index, clock, ids, readers, purger, bell=bell, serving=serving
            )
            cap = Cap(settings.records_cap_bytes or None)
            records = RecordsServicer(tenants, cap, clock, Stamp(clock, ids), readers)
            maintenance = _maintenance(store, index, rebuild_index, tenants)
            async with _recounting(home, store, bell, serving, readers, clock) as stop_recounting:

                def stopping() -> None:
                    bell.close()
                    stop_recounting()

                service = _service(servicer, records, store, index, maintenance, stopping)
                await serve(service, home, settings, clock)
    finally:
        tenants.close()
        purger.close()
        follower.close()
        store.close()
        index.close()


@asynccontextmanager
async def _recounting(
    home: Home,
    store: Store,
    bell: CommitBell,
    serving: Serving,
    readers: Executor,
    clock: Clock,
) -> AsyncIterator[Callable[[], object]]:
    """Have tokens counted by the slots service until the block ends, or what it gets is called."""
    async with open_channel(home, "slots") as channel:
        stub: slots_pb2_grpc.SlotsServiceAsyncStub = slots_pb2_grpc.SlotsServiceStub(channel)
        to_slots = Caller("slots", home=home)

        async def count(texts: Sequence[str]) -> Counted:
            request = slots_pb2.CountTokensRequest(texts=texts, exact=True)
            seconds = COUNT_SECONDS if texts else _ASK_SECONDS
            found = await to_slots.unary(
                stub.CountTokens, request, CallContext(caller="memory"), seconds
            )
            return Counted(found.counts, found.tokenizer)

        recounter = Recounter(store, bell, serving, count, readers, clock)
        recounting = asyncio.create_task(recounter.run(), name="recount")
        try:
            yield recounting.cancel
        finally:
            recounting.cancel()
            with suppress(asyncio.CancelledError):
                await recounting


def _maintenance(
    store: Store,
    index: LexicalIndex,
    rebuild_index: Callable[[Report], int],
    tenants: Tenants,
) -> MaintenanceServicer:
    def keeping(tenant_id: str) -> Keeping:
        if not tenant_id:
            checks = MemoryChecks(index, store.read, lambda: _settle(store))
            return Keeping(MEMORY_STORE.service, store, checks, rebuild_index)
        one = tenants.find(tenant_id)
        records = RecordChecks(one.index, one.store.read, lambda: _settle(one.store))
        return Keeping(RECORDS.service, one.store, records, one.rebuild_index)

    return MaintenanceServicer(keeping)


def _settle(store: Store) -> None:
    # The future has an end when the index has followed all before, or could not.
    store.write(lambda writer: None).exception()


def _service(
    servicer: MemoryServicer,
    records: RecordsServicer,
    store: Store,
    index: LexicalIndex,
    maintenance: MaintenanceServicer,
    stopping: Callable[[], None],
) -> Service:
    def register(server: grpc.aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, server)
        records_pb2_grpc.add_RecordsServiceServicer_to_server(records, server)

    return Service(
        name="memory",
        contracts=(
            memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
            records_pb2.DESCRIPTOR.services_by_name["RecordsService"].full_name,
        ),
        register=register,
        stopping=stopping,
        limits=limits_in(limits, record_limits),
        describe_store=lambda: described(store, index.progress.position),
        maintenance=maintenance,
    )


if __name__ == "__main__":
    run_process("memory", memory_service)
