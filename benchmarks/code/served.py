"""The code service in a process of its own, called as the bridge calls it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.channels import MAINTENANCE_SECONDS, READ_SECONDS, Caller, open_channel
from muniment.kit.context import CallContext
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from muniment.v1 import code_pb2, code_pb2_grpc

__all__ = ["Served", "serve_code"]

_START_SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """A service, and one tree that it is asked about."""

    pid: int
    stub: code_pb2_grpc.CodeServiceAsyncStub
    caller: Caller
    context: CallContext

    async def index(self) -> code_pb2.IndexResult:
        """Bring the index up to the disk."""
        responses = self.stub.IndexProject(
            code_pb2.IndexProjectRequest(),
            metadata=self.context.to_metadata(),
            timeout=MAINTENANCE_SECONDS,
        )
        parts = [response async for response in responses]
        return parts[-1].result

    async def describe(self, seconds: float = READ_SECONDS) -> code_pb2.DescribeIndexResponse:
        """What the index holds. It waits so long for a service that starts."""
        request = code_pb2.DescribeIndexRequest()
        return await self.caller.unary(self.stub.DescribeIndex, request, self.context, seconds)

    async def draw(
        self, budget: int, focus: Sequence[str] = (), *, names_only: bool = False
    ) -> code_pb2.GetRepoMapResponse:
        """A map."""
        request = code_pb2.GetRepoMapRequest(
            token_budget=budget, focus_paths=focus, names_only=names_only
        )
        return await self.caller.unary(self.stub.GetRepoMap, request, self.context, READ_SECONDS)

    async def find(self, name: str) -> code_pb2.QuerySymbolResponse:
        """Definitions of a name."""
        request = code_pb2.QuerySymbolRequest(qualified_name=name)
        return await self.caller.unary(self.stub.QuerySymbol, request, self.context, READ_SECONDS)

    async def impact(self, name: str, depth: int) -> code_pb2.GetImpactResponse:
        """Who depends on what has that name."""
        request = code_pb2.GetImpactRequest(qualified_name=name, depth=depth)
        return await self.caller.unary(self.stub.GetImpact, request, self.context, READ_SECONDS)


@asynccontextmanager
async def serve_code(tree: Path, *, watch: bool = True) -> AsyncIterator[Served]:
    """A service of a home of its own that ends with the block, and clients to it."""
    with _process(watch=watch) as (home, process):
        async with open_channel(home, "code") as channel:
            served = Served(
                process.pid,
                code_pb2_grpc.CodeServiceStub(channel),
                Caller("code", home=home),
                CallContext("proj_bench", str(tree), caller="bench"),
            )
            await served.describe(_START_SECONDS)
            yield served


@contextmanager
def _process(*, watch: bool) -> Iterator[tuple[Home, subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        place = Path(folder).resolve()
        home, keys = Home(place / "home"), place / "keys"
        home.path.mkdir()
        randomness = SystemRandomness()
        KeyShelf(home, "file", str(keys)).keep(HomeKey.make(randomness, sealed=False), randomness)
        environment = {
            "PATH": os.environ["PATH"],
            "MUNIMENT_HOME": str(home.path),
            "MUNIMENT_KEY_FOLDER": str(keys),
            "MUNIMENT_LOG_LEVEL": "error",
            "MUNIMENT_CODE_WATCH": "on" if watch else "off",
        }
        command = [sys.executable, "-P", "-m", "muniment.code"]
        with subprocess.Popen(command, env=environment) as process:
            try:
                yield home, process
            finally:
                process.terminate()
