"""Starts the code service: `python -m muniment.code`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import grpc

from muniment.code import limits
from muniment.code.readers import Readers, most_readers
from muniment.code.schema import SCHEMA
from muniment.code.service import CodeServicer, Counted
from muniment.code.trees import Trees
from muniment.code.verification import CodeChecks
from muniment.kit.channels import Caller, open_channel
from muniment.kit.clock import SystemClock
from muniment.kit.context import CallContext
from muniment.kit.counting import estimate_tokens
from muniment.kit.maintenance import Keeping, MaintenanceServicer
from muniment.kit.opener import StoreOpener
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.kit.server import Service, described, limits_in, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store import Store
from muniment.kit.store.disk import SystemDisk
from muniment.kit.store.jobs import ThreadedLoop
from muniment.kit.stores import CODE_STORE, hold_stores
from muniment.v1 import code_pb2, code_pb2_grpc, slots_pb2, slots_pb2_grpc

_THREADS = 16

_ASK_SECONDS, _COUNT_SECONDS = 1.0, 10.0
"""How long the slots service may take to say who serves, and to count."""

_PATIENCE_SECONDS = 0.1


async def code_service(home: Home, settings: Settings) -> None:
    """Serve until told to stop."""
    with hold_stores(home, (CODE_STORE,)):
        await _serve(home, settings)


async def _serve(home: Home, settings: Settings) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    opener = StoreOpener(home, settings, clock, randomness, SystemDisk())
    store = opener.store_in(CODE_STORE.folder(home), SCHEMA, {}, ThreadedLoop())
    readers = Readers(most_readers(settings.code_workers), settings.code_file_bytes)
    trees = Trees(store, readers, clock, watches=settings.code_watch == "on")
    try:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="answer") as threads:
            settling = threads.submit(trees.forget_gone)
            # The first text has the vocabulary loaded, and nobody should wait for that.
            threads.submit(estimate_tokens, " ")
            async with _counting(home) as count:
                servicer = CodeServicer(trees, threads, count)
                await serve(_service(servicer, readers, store), home, settings, clock)
            settling.result()
            readers.close()
            trees.close()
    finally:
        readers.close()
        trees.close()
        store.close()


@asynccontextmanager
async def _counting(
    home: Home,
) -> AsyncIterator[Callable[[Sequence[str]], Awaitable[Counted]]]:
    """Counts of the serving model, by the slots service."""
    async with open_channel(home, "slots") as channel:
        stub: slots_pb2_grpc.SlotsServiceAsyncStub = slots_pb2_grpc.SlotsServiceStub(channel)
        to_slots = Caller("slots", home=home)

        async def count(texts: Sequence[str]) -> Counted:
            request = slots_pb2.CountTokensRequest(texts=texts, exact=True)
            found = await to_slots.unary(
                stub.CountTokens,
                request,
                CallContext(caller="code"),
                _COUNT_SECONDS if texts else _ASK_SECONDS,
                # A map is not worth waiting for a service that is away.
                patience_seconds=_PATIENCE_SECONDS,
            )
            return Counted(found.counts, found.tokenizer)

        yield count


def _service(servicer: CodeServicer, readers: Readers, store: Store) -> Service:
    def register(server: grpc.aio.Server) -> None:
        code_pb2_grpc.add_CodeServiceServicer_to_server(servicer, server)

    keeping = Keeping(CODE_STORE.service, store, CodeChecks(), lambda report: 0)
    return Service(
        name=CODE_STORE.service,
        contracts=(code_pb2.DESCRIPTOR.services_by_name["CodeService"].full_name,),
        register=register,
        limits=limits_in(limits),
        describe_store=lambda: described(store, store.position),
        maintenance=MaintenanceServicer(lambda tenant_id: keeping),
        stopping=readers.stop,
    )


if __name__ == "__main__":
    run_process("code", code_service)
