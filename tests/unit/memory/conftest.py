"""One memory service for all tests, an agent with a project of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

from muniment.kit.paths import Home
from tests.support.homes import a_home
from tests.support.memory import Agent, Memory, a_memory


@pytest.fixture(autouse=True)
def _no_logs() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def memory() -> AsyncIterator[Memory]:
    """A service that tests share. What they do in one project is nothing to the others."""
    with a_home() as home:
        async with a_memory(home) as memory:
            yield memory


@pytest.fixture
def agent(memory: Memory) -> Agent:
    return memory.agent()


@pytest.fixture
def home() -> Iterator[Home]:
    """A home for a service of its own."""
    with a_home() as home:
        yield home
