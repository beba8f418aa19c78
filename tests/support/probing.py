"""A prober in the process of the test, with a store of its own, for one server."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.clock import SystemClock
from muniment.kit.store import Store, StoreOptions
from muniment.slots.addresses import ServerAddress
from muniment.slots.backend import Backend
from muniment.slots.backends import Backends
from muniment.slots.knowing import Knowledge
from muniment.slots.probing import SHORT_WORDS, Prober
from muniment.slots.schema import SCHEMA
from tests.support.seams import SeededRandomness
from tests.support.stores import QuickDisk, protection

__all__ = ["Probing", "a_prober"]

_MAP_LIMIT_BYTES = 64 * 1024**2
_NAME = "main"
_seeds = itertools.count(1)


@dataclass(frozen=True)
class Probing:
    """What looks at one server; as new as a service that was started just now."""

    prober: Prober
    backend: Backend

    async def probe(self) -> None:
        """Probe the server as somebody asks for it."""
        await self.prober.probe(self.backend, SHORT_WORDS, lambda step, done, total: None)

    async def idle(self) -> None:
        """Do what is done unasked, every now and then."""
        await self.prober.probe_if_idle(self.backend)

    async def is_probed(self) -> bool:
        """Whether the server as it is now was probed."""
        found = await self.backend.ready()
        return (await self.prober.knowledge.of(_NAME, found.subject)).is_probed


@asynccontextmanager
async def a_prober(url: str, folder: Path, save_folder: Path) -> AsyncIterator[Probing]:
    """A prober with its store in the folder."""
    seed = next(_seeds)
    clock, randomness = SystemClock(), SeededRandomness(seed)
    address = ServerAddress(_NAME, url, save_folder=str(save_folder))
    backends = Backends([address], folder, clock)
    options = StoreOptions(map_limit_bytes=_MAP_LIMIT_BYTES, clock=clock, disk=QuickDisk())
    with closing(Store(folder / "store", SCHEMA, protection(seed=seed), options)) as store:
        prober = Prober(clock, randomness, Knowledge(store, clock), backends.places)
        try:
            yield Probing(prober, backends.find(""))
        finally:
            await backends.close()
