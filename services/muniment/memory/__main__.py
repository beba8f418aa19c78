"""Starts the memory service: `python -m muniment.memory`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from muniment.kit.clock import Clock, SystemClock
from muniment.kit.home_key import KeyShelf
from muniment.kit.ids import IdMaker
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex, delete_index
from muniment.kit.maintenance import MaintenanceServicer
from muniment.kit.paths import Home
from muniment.kit.progress import Report
from muniment.kit.randomness import Randomness, SystemRandomness
from muniment.kit.server import Service, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Store, StoreOptions
from muniment.kit.store.bell import CommitBell
from muniment.kit.store.disk import Disk, SystemDisk
from muniment.kit.store.folders import settle
from muniment.kit.store.jobs import ThreadedLoop, WriterLoop
from muniment.kit.store.migration import open_store
from muniment.kit.store.schemas import peek_schema
from muniment.kit.stores import MEMORY_STORE, hold_stores
from muniment.memory import limits
from muniment.memory.indexing import EpisodesAndPins
from muniment.memory.migrations import MIGRATIONS
from muniment.memory.purge import Purger
from muniment.memory.schema import SCHEMA
from muniment.memory.service import MemoryServicer
from muniment.memory.verification import MemoryChecks
from muniment.v1 import common_pb2, memory_pb2, memory_pb2_grpc

_READERS = 4


async def memory_service(
    home: Home, settings: Settings, *, disk: Disk | None = None, loop: WriterLoop | None = None
) -> None:
    """Serve until told to stop, on the machine's disk and in batches unless told otherwise."""
    with hold_stores(home, (MEMORY_STORE,)):
        await _serve(home, settings, disk or SystemDisk(), loop or ThreadedLoop())


async def _serve(home: Home, settings: Settings, disk: Disk, loop: WriterLoop) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    store = _open_store(home, settings, clock, randomness, disk, loop)
    index = _open_index(home, store)
    follower = IndexFollower(index, EpisodesAndPins())

    def rebuild_index(report: Report) -> int:
        return _rebuild_index(store, index, follower, report)

    purger = Purger(store, rebuild_index, clock)
    try:
        store.follow(follower)
        purger.resume()
        with ThreadPoolExecutor(_READERS, thread_name_prefix="reader") as readers:
            ids = IdMaker(clock, randomness)
            bell = CommitBell()
            store.follow(bell)
            servicer = MemoryServicer(store, index, clock, ids, readers, purger, bell=bell)
            maintenance = _maintenance(store, index, rebuild_index)
            await serve(_service(servicer, store, index, maintenance), home, settings, clock)
    finally:
        purger.close()
        follower.close()
        store.close()
        index.close()


def _open_store(
    home: Home,
    settings: Settings,
    clock: Clock,
    randomness: Randomness,
    disk: Disk,
    loop: WriterLoop,
) -> Store:
    folder = MEMORY_STORE.folder(home)
    settle(folder)
    shelf = KeyShelf(home, settings.key_store, settings.key_folder)
    key = shelf.load_or_make(randomness, peek_schema(folder))
    options = StoreOptions(
        map_limit_bytes=settings.memory_map_bytes,
        retention_changes=settings.feed_retention_changes,
        reply_life_seconds=settings.reply_life_seconds,
        disk=disk,
        loop=loop,
        clock=clock,
    )
    return open_store(folder, SCHEMA, MIGRATIONS, key.protection(randomness), options)


def _open_index(home: Home, store: Store) -> LexicalIndex:
    path = MEMORY_STORE.index(home)
    if not store.protection.sealed:
        return LexicalIndex(path)
    # The index of a sealed store lives in memory: no word of it may reach the disk.
    delete_index(path)
    return LexicalIndex(None)


def _rebuild_index(
    store: Store, index: LexicalIndex, follower: IndexFollower, report: Report
) -> int:
    """Make the index anew, to its end. How many documents it has then."""
    follower.rebuild(store.read)
    total = index.progress.below
    while follower.fill(store.read):
        report("indexing", total - index.progress.below, total)
    documents = index.keys()
    return sum(1 for _ in documents)


def _maintenance(
    store: Store, index: LexicalIndex, rebuild_index: Callable[[Report], int]
) -> MaintenanceServicer:
    def settle() -> None:
        # The future has an end when the index has followed all before, or could not.
        store.write(lambda writer: None).exception()

    return MaintenanceServicer(store, MemoryChecks(index, store.read, settle), rebuild_index)


def _service(
    servicer: MemoryServicer,
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

    return Service(
        name="memory",
        contracts=(memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,),
        register=lambda server: memory_pb2_grpc.add_MemoryServiceServicer_to_server(
            servicer, server
        ),
        stopping=servicer.bell.close,
        limits={
            name.lower(): value for name, value in vars(limits).items() if isinstance(value, int)
        },
        describe_store=describe_store,
        maintenance=maintenance,
    )


if __name__ == "__main__":
    run_process("memory", memory_service)
