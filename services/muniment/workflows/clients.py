"""The services that workflows call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muniment.kit.channels import Caller, open_channel
from muniment.kit.paths import Home
from muniment.v1 import common_pb2_grpc, maintenance_pb2_grpc, memory_pb2_grpc, records_pb2_grpc

__all__ = ["Clients", "open_clients"]


@dataclass(frozen=True)
class Clients:
    """Stubs of the services of one home, and the callers that make their calls last."""

    memory: memory_pb2_grpc.MemoryServiceAsyncStub
    records: records_pb2_grpc.RecordsServiceAsyncStub
    memory_describe: common_pb2_grpc.DescribeServiceAsyncStub
    memory_maintenance: maintenance_pb2_grpc.MaintenanceServiceAsyncStub
    to_memory: Caller


@asynccontextmanager
async def open_clients(home: Home) -> AsyncIterator[Clients]:
    """Clients of the home's services. Nothing is connected before the first call."""
    async with open_channel(home, "memory") as channel:
        yield Clients(
            memory=memory_pb2_grpc.MemoryServiceStub(channel),
            records=records_pb2_grpc.RecordsServiceStub(channel),
            memory_describe=common_pb2_grpc.DescribeServiceStub(channel),
            memory_maintenance=maintenance_pb2_grpc.MaintenanceServiceStub(channel),
            to_memory=Caller("memory", home=home),
        )
