"""Starts the slots service: `python -m muniment.slots`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

import grpc
import structlog

from muniment.kit.clock import SystemClock
from muniment.kit.errors import PreconditionError
from muniment.kit.files import private_folder
from muniment.kit.ids import IdMaker
from muniment.kit.maintenance import Keeping, MaintenanceServicer
from muniment.kit.opener import StoreOpener
from muniment.kit.paths import Home, user_path
from muniment.kit.randomness import SystemRandomness
from muniment.kit.server import Service, described, limits_in, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Store
from muniment.kit.store.disk import SystemDisk
from muniment.kit.store.jobs import ThreadedLoop
from muniment.kit.stores import SLOTS_STORE, hold_stores
from muniment.slots import limits
from muniment.slots.addresses import addresses
from muniment.slots.backends import Backends
from muniment.slots.knowing import Knowledge
from muniment.slots.probing import Prober
from muniment.slots.removing import Remover
from muniment.slots.restoring import Restorer
from muniment.slots.retention import Retention
from muniment.slots.saving import Saver
from muniment.slots.schema import SCHEMA
from muniment.slots.sealing_up import seal_up
from muniment.slots.service import SlotsServicer
from muniment.slots.verification import SlotChecks
from muniment.slots.watching import RestoreWatch
from muniment.v1 import slots_pb2, slots_pb2_grpc

_PAUSE_SECONDS = 20.0

_log = structlog.get_logger()


async def slots_service(home: Home, settings: Settings) -> None:
    """Serve until told to stop."""
    with hold_stores(home, (SLOTS_STORE,)):
        await _serve(home, settings)


async def _serve(home: Home, settings: Settings) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    backends = Backends(addresses(settings), _snapshot_folder(home, settings), clock)
    opener = StoreOpener(home, settings, clock, randomness, SystemDisk())
    store = opener.store_in(SLOTS_STORE.folder(home), SCHEMA, {}, ThreadedLoop())
    watch = RestoreWatch(clock)
    try:
        remover = Remover(store, clock, backends.places_of)
        await remover.settle(is_start=True)
        await asyncio.to_thread(seal_up, store, backends.folder, randomness)
        knowledge = Knowledge(store, clock)
        prober = Prober(clock, randomness, knowledge, backends.places)
        servicer = SlotsServicer(
            backends=backends,
            store=store,
            knowledge=knowledge,
            saver=Saver(
                store=store,
                clock=clock,
                ids=IdMaker(clock, randomness),
                randomness=randomness,
                retention=Retention.of(settings),
                spare_bytes=settings.snapshots_spare_bytes,
                remover=remover,
                places=backends.places,
            ),
            restorer=Restorer(store, clock, watch, knowledge, backends.places, remover.turns),
            remover=remover,
            prober=prober,
        )
        probing = asyncio.create_task(_now_and_then(backends, prober, remover, settings))
        try:
            await serve(_service(servicer, store), home, settings, clock)
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
    finally:
        watch.close()
        await backends.close()
        store.close()


async def _now_and_then(
    backends: Backends, prober: Prober, remover: Remover, settings: Settings
) -> None:
    """Learn what servers can do while their slots are unused; remove what was left behind."""
    while True:
        for backend in backends:
            await _tried("files of probes are not looked for", prober.sweep(backend))
            if settings.slots_probe == "on":
                await _tried("a server is not probed", prober.probe_if_idle(backend))
        await _tried("snapshots are not settled", remover.settle(is_start=False))
        await asyncio.sleep(_PAUSE_SECONDS)


async def _tried(what: str, step: Awaitable[None]) -> None:
    """Take the step; whatever becomes of it, the next one follows."""
    try:
        await step
    except Exception:
        _log.exception(what)


def _snapshot_folder(home: Home, settings: Settings) -> Path:
    named = settings.snapshot_folder
    if not named:
        return private_folder(home.data(SLOTS_STORE.service) / "snapshots")
    folder = user_path(named)
    if not folder.is_absolute():
        raise PreconditionError(
            f"is {named}, which is not absolute",
            reason="SETTING_INVALID",
            field="snapshot_folder",
            fix="name the whole path",
        )
    # Its owner decides who else may use it: the server may be of another user.
    return private_folder(folder, keep_mode=True)


def _service(servicer: SlotsServicer, store: Store) -> Service:
    def register(server: grpc.aio.Server) -> None:
        slots_pb2_grpc.add_SlotsServiceServicer_to_server(servicer, server)

    keeping = Keeping(SLOTS_STORE.service, store, SlotChecks(), lambda report: 0)
    return Service(
        name=SLOTS_STORE.service,
        contracts=(slots_pb2.DESCRIPTOR.services_by_name["SlotsService"].full_name,),
        register=register,
        limits=limits_in(limits),
        describe_store=lambda: described(store, store.position),
        maintenance=MaintenanceServicer(lambda tenant_id: keeping),
    )


if __name__ == "__main__":
    run_process("slots", slots_service)
