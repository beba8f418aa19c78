"""A process of writers that call the memory service; prints its latencies as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence

from benchmarks.store.texts import Corpus
from muniment.kit.channels import WRITE_SECONDS, open_channel
from muniment.kit.context import CallContext
from muniment.kit.paths import Home
from muniment.v1 import memory_pb2, memory_pb2_grpc

_TEXTS = 500


async def _write(
    stub: memory_pb2_grpc.MemoryServiceAsyncStub,
    texts: Sequence[str],
    name: str,
    end: float,
    latencies: list[float],
) -> None:
    number = 0
    while time.perf_counter() < end:
        context = CallContext(
            project_id="proj_bench",
            session_id=f"session-{name}",
            caller="bench",
            idempotency_key=f"{name}-{number}-{end}",
        )
        request = memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.ROLE_USER, content=texts[(hash(name) + number) % len(texts)]
        )
        began = time.perf_counter()
        await stub.CommitEpisode(request, timeout=WRITE_SECONDS, metadata=context.to_metadata())
        latencies.append(time.perf_counter() - began)
        number += 1


async def _main(options: argparse.Namespace) -> None:
    texts = list(Corpus().texts(0, _TEXTS))
    latencies: list[float] = []
    async with open_channel(Home.locate(), "memory") as channel:
        stub: memory_pb2_grpc.MemoryServiceAsyncStub = memory_pb2_grpc.MemoryServiceStub(channel)
        await channel.channel_ready()
        await _write(stub, texts, f"{options.name}-warm", time.perf_counter() + 0.2, [])
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.perf_counter()
        writes = (
            _write(stub, texts, f"{options.name}-{one}", began + options.seconds, latencies)
            for one in range(options.calls_at_once)
        )
        await asyncio.gather(*writes)
    print(json.dumps({"seconds": time.perf_counter() - began, "latencies": latencies}))


def main() -> None:
    """Write for so long, as soon as a line is read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("calls_at_once", type=int)
    parser.add_argument("seconds", type=float)
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
