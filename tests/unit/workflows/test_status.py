"""The host's status says what can be told, and why the rest cannot."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from muniment.kit.channels import open_channel
from muniment.kit.context import CallContext
from muniment.kit.errors import InvalidArgumentError, TimedOutError
from muniment.kit.paths import Home
from muniment.kit.server import Service
from muniment.v1 import memory_pb2
from muniment.workflows.clients import MEMORY, SLOTS, Clients, open_clients
from muniment.workflows.pins import pin
from muniment.workflows.status import (
    describe_service,
    host_status,
    list_projects,
    service_metrics,
)
from tests.support.metrics import samples
from tests.support.probe import check_health, served
from tests.support.slots import a_slots

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_counts_of_a_memory_that_is_up(clients: Clients, context: CallContext) -> None:
    request = memory_pb2.PinRequest(content="Use tabs.")
    await pin(clients, replace(context, idempotency_key="1"), request)
    status = await host_status(clients, context)
    assert status.failure is None
    assert status.memory is not None
    assert (status.memory.project_episodes, status.memory.project_pins) == (0, 1)
    known = (await list_projects(clients)).projects
    (project,) = [one for one in known if one.project_id == context.project_id]
    assert project.pins == 1


async def test_a_memory_that_is_down_leaves_its_part_empty(home: Home) -> None:
    async with open_clients(home) as clients:
        status = await host_status(clients, CallContext(project_id="p"), deadline_seconds=0.1)
    assert status.memory is None
    assert isinstance(status.failure, TimedOutError)
    assert status.failure.reason == "SERVICE_AWAY"


async def test_a_memory_that_refuses_leaves_its_part_empty(clients: Clients) -> None:
    status = await host_status(clients, CallContext())
    assert status.memory is None
    assert isinstance(status.failure, InvalidArgumentError)


async def test_a_slots_service_that_is_down_leaves_its_part_empty(
    clients: Clients, context: CallContext
) -> None:
    status = await host_status(clients, context, deadline_seconds=0.5)
    assert status.memory is not None
    assert status.failure is None
    assert (status.inference.servers, status.inference.slots) == (None, None)
    assert status.inference.usual is None
    assert isinstance(status.inference.failure, TimedOutError)


async def test_a_slots_service_without_servers_says_so(home: Home) -> None:
    async with a_slots(home), open_clients(home) as clients:
        status = await host_status(clients, CallContext(project_id="p"), deadline_seconds=5)
    assert status.memory is None
    assert status.inference.servers is not None
    assert not status.inference.servers
    assert status.inference.failure is None


@pytest.mark.parametrize("name", [MEMORY, SLOTS])
async def test_description_and_metrics_are_the_services_own(home: Home, name: str) -> None:
    service = Service(name, (), lambda server: None, limits={"hits": 7})
    async with (
        served(service, home),
        open_clients(home) as clients,
        open_channel(home, name) as channel,
    ):
        assert await check_health(channel) == "SERVING"
        told = await describe_service(clients, name)
        assert (told.service, told.pid, dict(told.limits)) == (name, os.getpid(), {"hits": 7})
        counted = samples(await service_metrics(clients, name))
    assert counted["muniment_rpc_calls_total", "/muniment.v1.DescribeService/Describe", "OK"] == 1
