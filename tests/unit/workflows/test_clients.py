"""Clients are ready before their services are."""

from __future__ import annotations

import asyncio

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import TimedOutError
from muniment.kit.paths import Home
from muniment.workflows.clients import open_clients
from muniment.workflows.pins import list_pins
from tests.support.memory import a_memory

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTEXT = CallContext(project_id="proj_1")


async def test_opening_them_needs_no_service(home: Home) -> None:
    async with open_clients(home) as clients:
        with pytest.raises(TimedOutError, match="memory service did not come back"):
            await list_pins(clients, CONTEXT, deadline_seconds=0.1)


async def test_they_find_the_service_when_it_comes_and_when_it_comes_back(home: Home) -> None:
    async with open_clients(home) as clients:
        waiting = asyncio.ensure_future(list_pins(clients, CONTEXT))
        async with a_memory(home):
            assert not (await waiting).pins
        waiting = asyncio.ensure_future(list_pins(clients, CONTEXT))
        async with a_memory(home):
            assert not (await waiting).pins
