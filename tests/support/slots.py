"""A slots service in the process of the test, for the servers that its settings name."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import grpc

from muniment.kit.files import private_folder
from muniment.kit.ids import IdMaker
from muniment.kit.paths import Home
from muniment.kit.settings import Settings
from muniment.kit.store import Store, StoreOptions
from muniment.slots.addresses import addresses
from muniment.slots.backends import Backends
from muniment.slots.knowing import Knowledge
from muniment.slots.probing import Prober
from muniment.slots.removing import Remover
from muniment.slots.restoring import Restorer
from muniment.slots.retention import Retention
from muniment.slots.saving import Saver
from muniment.slots.schema import SCHEMA
from muniment.slots.service import SlotsServicer
from muniment.slots.watching import RestoreWatch
from muniment.v1 import slots_pb2_grpc
from tests.support.on_socket import serving
from tests.support.seams import FakeClock, SeededRandomness
from tests.support.stores import QuickDisk, protection

__all__ = ["a_slots", "serving_slots"]

_MAP_LIMIT_BYTES = 64 * 1024**2
_STEP_NS = 1_000_000
_seeds = itertools.count(1)


@asynccontextmanager
async def a_slots(home: Home, **settings: Any) -> AsyncIterator[None]:
    """The home's slots service, until the block ends; without a server unless one is named."""
    chosen = Settings(**{"backend": "none", **settings})
    seed = next(_seeds)
    clock, randomness = FakeClock(step_ns=_STEP_NS), SeededRandomness(seed)
    home.data("slots").mkdir(mode=0o700, parents=True, exist_ok=True)
    backends = Backends(addresses(chosen, {}), private_folder(home.data("slots") / "saves"), clock)
    options = StoreOptions(map_limit_bytes=_MAP_LIMIT_BYTES, clock=clock, disk=QuickDisk())
    folder = home.data("slots") / "store"
    watch = RestoreWatch(clock)
    with closing(Store(folder, SCHEMA, protection(seed=seed), options)) as store:
        remover = Remover(store, clock, backends.places_of)
        knowledge = Knowledge(store, clock)
        servicer = SlotsServicer(
            backends=backends,
            store=store,
            knowledge=knowledge,
            saver=Saver(
                store=store,
                clock=clock,
                ids=IdMaker(clock, randomness),
                randomness=randomness,
                retention=Retention.of(chosen),
                spare_bytes=0,
                remover=remover,
                places=backends.places,
            ),
            restorer=Restorer(store, clock, watch, knowledge, backends.places, remover.turns),
            remover=remover,
            prober=Prober(clock, randomness, knowledge, backends.places),
        )
        try:
            async with serving_slots(home, servicer):
                yield
        finally:
            watch.close()
            await backends.close()


@asynccontextmanager
async def serving_slots(
    home: Home, servicer: slots_pb2_grpc.SlotsServiceServicer
) -> AsyncIterator[None]:
    """Somebody who speaks the slots contract, on the home's socket."""

    def register(server: grpc.aio.Server) -> None:
        slots_pb2_grpc.add_SlotsServiceServicer_to_server(servicer, server)

    async with serving(home, "slots", register):
        yield
