"""A code service in the process of the test, with real parser processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing

import grpc

from muniment.code.readers import Readers
from muniment.code.service import CodeServicer, Counted
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.v1 import code_pb2_grpc
from tests.support.code_trees import FILE_LIMIT_BYTES, an_index
from tests.support.on_socket import serving

__all__ = ["a_code"]


async def _nobody_counts(texts: Sequence[str]) -> Counted:
    raise PreconditionError("no server is configured", reason="LLAMA_NONE")


@asynccontextmanager
async def a_code(home: Home) -> AsyncIterator[None]:
    """The home's code service, until the block ends. It watches nothing, and estimates tokens."""
    folder = home.data("code") / "store"
    with (
        closing(Readers(1, FILE_LIMIT_BYTES)) as readers,
        an_index(readers, folder) as trees,
        ThreadPoolExecutor() as threads,
    ):
        servicer = CodeServicer(trees, threads, _nobody_counts)

        def register(server: grpc.aio.Server) -> None:
            code_pb2_grpc.add_CodeServiceServicer_to_server(servicer, server)

        async with serving(home, "code", register):
            yield
