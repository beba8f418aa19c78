"""A memory service and clients that call it as the bridge and the command line do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from muniment.kit.context import CallContext
from muniment.kit.paths import Home
from muniment.workflows.clients import Clients, open_clients
from tests.support.homes import a_home
from tests.support.memory import Memory, a_memory


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def memory() -> AsyncIterator[Memory]:
    """A service that tests share; each has a project of its own."""
    with a_home() as home:
        async with a_memory(home) as memory:
            yield memory


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clients(memory: Memory) -> AsyncIterator[Clients]:
    async with open_clients(memory.home) as clients:
        yield clients


@pytest.fixture
def context(memory: Memory) -> CallContext:
    return memory.agent().context


@pytest.fixture
def home() -> Iterator[Home]:
    """A home in which nothing runs."""
    with a_home() as home:
        yield home
