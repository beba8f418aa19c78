"""How the host fares, as far as it can be told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from muniment.kit.channels import READ_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.v1 import code_pb2, common_pb2, memory_pb2, slots_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.code import describe_index
from muniment.workflows.server_words import can, usual_server
from muniment.workflows.slots import list_servers, list_slots

__all__ = [
    "HostStatus",
    "ServersStatus",
    "describe_service",
    "host_status",
    "list_projects",
    "service_metrics",
]

_STATUS_SECONDS = 3.0


@dataclass(frozen=True)
class ServersStatus:
    """What is known of the inference servers. A part that could not be read is None."""

    servers: Sequence[slots_pb2.Server] | None
    slots: Sequence[slots_pb2.Slot] | None
    """Those of the usual server; None also where it does not tell them."""
    failure: MunimentError | None
    """Why a part could not be read."""

    @property
    def usual(self) -> slots_pb2.Server | None:
        """The home's usual server, where there is any and it is known."""
        return usual_server(self.servers or ())


@dataclass(frozen=True)
class HostStatus:
    """What the services say of themselves. A part that could not be read is None."""

    memory: memory_pb2.GetStatsResponse | None
    failure: MunimentError | None
    """Why the memory's part is missing."""
    inference: ServersStatus
    code: code_pb2.DescribeIndexResponse | None
    code_failure: MunimentError | None
    """Why the part of the code index is missing."""


async def host_status(
    clients: Clients, context: CallContext, *, deadline_seconds: float = _STATUS_SECONDS
) -> HostStatus:
    """Ask all services at once how they fare; one that is down leaves its part empty."""
    (memory, failure), inference, (code, code_failure) = await asyncio.gather(
        _memory_status(clients, context, deadline_seconds),
        _servers_status(clients, context, deadline_seconds),
        _code_status(clients, context, deadline_seconds),
    )
    return HostStatus(memory, failure, inference, code, code_failure)


async def _memory_status(
    clients: Clients, context: CallContext, deadline_seconds: float
) -> tuple[memory_pb2.GetStatsResponse | None, MunimentError | None]:
    try:
        stats = await clients.to_memory.unary(
            clients.memory.GetStats, memory_pb2.GetStatsRequest(), context, deadline_seconds
        )
    except MunimentError as failure:
        return None, failure
    return stats, None


async def _code_status(
    clients: Clients, context: CallContext, deadline_seconds: float
) -> tuple[code_pb2.DescribeIndexResponse | None, MunimentError | None]:
    try:
        told = await describe_index(clients, context, deadline_seconds=deadline_seconds)
    except MunimentError as failure:
        return None, failure
    return told, None


async def _servers_status(
    clients: Clients, context: CallContext, deadline_seconds: float
) -> ServersStatus:
    # Who asks how servers fare has no slot in mind, and lays claim to none.
    context = replace(context, session_id="")
    clock = clients.to_slots.clock
    end = clock.monotonic() + deadline_seconds
    servers: Sequence[slots_pb2.Server] | None = None
    try:
        servers = await list_servers(clients, context, deadline_seconds=deadline_seconds)
        usual = usual_server(servers)
        if usual is None or not _tells_slots(usual):
            return ServersStatus(servers, None, None)
        left = end - clock.monotonic()
        slots = await list_slots(clients, context, server=usual.name, deadline_seconds=left)
    except MunimentError as failure:
        return ServersStatus(servers, None, failure)
    return ServersStatus(servers, slots, None)


def _tells_slots(server: slots_pb2.Server) -> bool:
    # One that sleeps is not woken for this.
    is_ready = server.condition == slots_pb2.SERVER_CONDITION_READY
    return is_ready and can(server, slots_pb2.CAPABILITY_KIND_SLOTS)


async def describe_service(clients: Clients, service: str) -> common_pb2.DescribeResponse:
    """What a service with a store says of itself."""
    keeper = clients.keepers[service]
    return await keeper.caller.unary(
        keeper.describe.Describe, common_pb2.DescribeRequest(), CallContext(), _STATUS_SECONDS
    )


async def service_metrics(clients: Clients, service: str) -> str:
    """A service's metrics in the Prometheus text format."""
    keeper = clients.keepers[service]
    response = await keeper.caller.unary(
        keeper.describe.GetMetrics, common_pb2.GetMetricsRequest(), CallContext(), _STATUS_SECONDS
    )
    return response.text


async def list_projects(clients: Clients) -> memory_pb2.ListProjectsResponse:
    """The projects that this host remembers and those that were purged, oldest first."""
    return await clients.to_memory.unary(
        clients.memory.ListProjects,
        memory_pb2.ListProjectsRequest(),
        CallContext(),
        READ_SECONDS,
    )
