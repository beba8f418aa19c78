"""Starts the memory service: `python -m muniment.memory`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from muniment.kit.clock import SystemClock
from muniment.kit.files import private_folder
from muniment.kit.ids import IdMaker
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.server import Service, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Store
from muniment.kit.store.tables import CHANGES
from muniment.memory import limits
from muniment.memory.indexing import IndexFollower
from muniment.memory.schema import SCHEMA
from muniment.memory.service import MemoryServicer
from muniment.v1 import common_pb2, memory_pb2, memory_pb2_grpc

_READERS = 4


async def memory_service(home: Home, settings: Settings) -> None:
    """Serve until told to stop."""
    clock = SystemClock()
    folder = private_folder(home.data("memory"))
    store = Store(folder / "store", SCHEMA, map_bytes=settings.memory_map_bytes)
    try:
        with (
            closing(LexicalIndex(folder / "lexical.sqlite3")) as index,
            ThreadPoolExecutor(_READERS, thread_name_prefix="reader") as readers,
        ):
            store.follow(IndexFollower(index))
            ids = IdMaker(clock, SystemRandomness())
            servicer = MemoryServicer(store, index, clock, ids, readers)
            await serve(_service(servicer, store, index), home, settings, clock)
    finally:
        store.close()


def _service(servicer: MemoryServicer, store: Store, index: LexicalIndex) -> Service:
    def describe_store() -> common_pb2.StoreDescription:
        with store.read() as reader:
            newest = reader.last_number(CHANGES)
        return common_pb2.StoreDescription(
            path=str(store.path),
            schema_version=store.schema_version,
            change_position=newest,
            index_position=index.position,
            size_bytes=store.size_bytes(),
        )

    return Service(
        name="memory",
        contracts=(memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,),
        register=lambda server: memory_pb2_grpc.add_MemoryServiceServicer_to_server(
            servicer, server
        ),
        limits={
            name.lower(): value for name, value in vars(limits).items() if isinstance(value, int)
        },
        describe_store=describe_store,
    )


if __name__ == "__main__":
    run_process("memory", memory_service)
