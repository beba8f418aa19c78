"""How the host fares, as far as it can be told."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.kit.channels import READ_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError
from muniment.v1 import common_pb2, memory_pb2
from muniment.workflows.clients import Clients

__all__ = ["HostStatus", "describe_memory", "host_status", "list_projects", "memory_metrics"]

_STATUS_SECONDS = 3.0


@dataclass(frozen=True)
class HostStatus:
    """What the services say of themselves. A part that could not be read is None."""

    memory: memory_pb2.GetStatsResponse | None
    failure: MunimentError | None
    """Why a part is missing."""


async def host_status(
    clients: Clients, context: CallContext, *, deadline_seconds: float = _STATUS_SECONDS
) -> HostStatus:
    """Ask the services for their counts; a service that is down leaves its part empty."""
    try:
        stats = await clients.to_memory.unary(
            clients.memory.GetStats, memory_pb2.GetStatsRequest(), context, deadline_seconds
        )
    except MunimentError as failure:
        return HostStatus(memory=None, failure=failure)
    return HostStatus(memory=stats, failure=None)


async def describe_memory(clients: Clients) -> common_pb2.DescribeResponse:
    """What the memory service says of itself."""
    return await clients.to_memory.unary(
        clients.memory_describe.Describe,
        common_pb2.DescribeRequest(),
        CallContext(),
        _STATUS_SECONDS,
    )


async def memory_metrics(clients: Clients) -> str:
    """The memory service's metrics in the Prometheus text format."""
    response = await clients.to_memory.unary(
        clients.memory_describe.GetMetrics,
        common_pb2.GetMetricsRequest(),
        CallContext(),
        _STATUS_SECONDS,
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
