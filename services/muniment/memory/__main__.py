"""Starts the memory service: `python -m muniment.memory`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import grpc

from muniment.kit.clock import Clock, SystemClock
from muniment.kit.home_key import KeyShelf
from muniment.kit.ids import IdMaker
from muniment.kit.index.embedding import MiniLM
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex, open_index
from muniment.kit.maintenance import Keeping, MaintenanceServicer
from muniment.kit.paths import Home
from muniment.kit.progress import Report
from muniment.kit.randomness import Randomness, SystemRandomness
from muniment.kit.server import Service, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Schema, Store, StoreOptions
from muniment.kit.store.bell import CommitBell
from muniment.kit.store.disk import Disk, SystemDisk
from muniment.kit.store.folders import settle
from muniment.kit.store.jobs import ThreadedLoop, WriterLoop
from muniment.kit.store.migration import Migration, open_store
from muniment.kit.store.schemas import peek_schema
from muniment.kit.stores import MEMORY_STORE, RECORDS, hold_stores, records_folder
from muniment.memory import limits
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
from muniment.memory.schema import SCHEMA
from muniment.memory.service import MemoryServicer
from muniment.memory.verification import MemoryChecks
from muniment.v1 import common_pb2, memory_pb2, memory_pb2_grpc, records_pb2, records_pb2_grpc

_READERS = 4


async def memory_service(
    home: Home, settings: Settings, *, disk: Disk | None = None, loop: WriterLoop | None = None
) -> None:
    """Serve until told to stop, on the machine's disk and in batches unless told otherwise."""
    with hold_stores(home, (MEMORY_STORE,)):
        await _serve(home, settings, disk or SystemDisk(), loop or ThreadedLoop())


async def _serve(home: Home, settings: Settings, disk: Disk, loop: WriterLoop) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    opener = _Opener(home, settings, clock, randomness, disk)
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
            ids = IdMaker(clock, randomness)
            bell = CommitBell()
            store.follow(bell)
            servicer = MemoryServicer(store, index, clock, ids, readers, purger, bell=bell)
            cap = Cap(settings.records_cap_bytes or None)
            records = RecordsServicer(tenants, cap, clock, Stamp(clock, ids), readers)
            maintenance = _maintenance(store, index, rebuild_index, tenants)
            service = _service(servicer, records, store, index, maintenance)
            await serve(service, home, settings, clock)
    finally:
        tenants.close()
        purger.close()
        follower.close()
        store.close()
        index.close()


@dataclass(frozen=True)
class _Opener:
    """Opens stores of the home, under its key."""

    home: Home
    settings: Settings
    clock: Clock
    randomness: Randomness
    disk: Disk

    def store_in(
        self, folder: Path, schema: Schema, migrations: Mapping[int, Migration], loop: WriterLoop
    ) -> Store:
        settle(folder)
        shelf = KeyShelf(self.home, self.settings.key_store, self.settings.key_folder)
        key = shelf.load_or_make(self.randomness, peek_schema(folder))
        options = StoreOptions(
            map_limit_bytes=self.settings.memory_map_bytes,
            retention_changes=self.settings.feed_retention_changes,
            reply_life_seconds=self.settings.reply_life_seconds,
            disk=self.disk,
            loop=loop,
            clock=self.clock,
        )
        return open_store(folder, schema, migrations, key.protection(self.randomness), options)


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
) -> Service:
    def describe_store() -> common_pb2.StoreDescription:
        return common_pb2.StoreDescription(
            path=str(store.path),
            schema_version=store.schema.version,
            change_position=store.position,
            index_position=index.progress.position,
            size_bytes=store.size_bytes(),
        )

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
        stopping=servicer.bell.close,
        limits={
            name.lower(): value
            for module in (limits, record_limits)
            for name, value in vars(module).items()
            if isinstance(value, int)
        },
        describe_store=describe_store,
        maintenance=maintenance,
    )


if __name__ == "__main__":
    run_process("memory", memory_service)
