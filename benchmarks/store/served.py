"""The memory service as it is, or with a late disk, without batches, or with nothing behind it."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import grpc

from benchmarks.store.setups import Setup, disk_of
from muniment.kit.clock import SystemClock
from muniment.kit.paths import Home
from muniment.kit.server import Service, run_process, serve
from muniment.kit.settings import Settings
from muniment.kit.store.jobs import BATCH_LIMIT_JOBS, ThreadedLoop
from muniment.memory.__main__ import memory_service
from muniment.v1 import memory_pb2

_CONTRACT = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name


async def _answer_at_once(
    request: memory_pb2.CommitEpisodeRequest, context: grpc.aio.ServicerContext[Any, Any]
) -> memory_pb2.CommitEpisodeResponse:
    return memory_pb2.CommitEpisodeResponse()


def _register(server: grpc.aio.Server) -> None:
    """Serve commits that do nothing: what a call alone costs."""
    handler = grpc.unary_unary_rpc_method_handler(
        _answer_at_once,
        request_deserializer=memory_pb2.CommitEpisodeRequest.FromString,
        response_serializer=memory_pb2.CommitEpisodeResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_CONTRACT, {"CommitEpisode": handler}),)
    )


async def _empty_service(home: Home, settings: Settings) -> None:
    service = Service(name="memory", contracts=(_CONTRACT,), register=_register)
    await serve(service, home, settings, SystemClock())


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--late-sync", action="store_true")
    parser.add_argument("--one-by-one", action="store_true")
    options = parser.parse_args()
    if options.empty:
        run_process("memory", _empty_service)
        return
    setup = Setup(options.late_sync, sealed=False, batches=not options.one_by_one)
    loop = ThreadedLoop(batch_limit_jobs=BATCH_LIMIT_JOBS if setup.batches else 1)
    run_process("memory", partial(memory_service, disk=disk_of(setup), loop=loop))


if __name__ == "__main__":
    main()
