"""The services that workflows call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from muniment.kit.channels import Caller, open_channel
from muniment.kit.paths import Home
from muniment.v1 import (
    code_pb2_grpc,
    common_pb2_grpc,
    maintenance_pb2_grpc,
    memory_pb2_grpc,
    records_pb2_grpc,
    slots_pb2_grpc,
)

__all__ = ["CODE", "MEMORY", "SLOTS", "Clients", "Keeper", "open_clients"]

MEMORY, SLOTS, CODE = "memory", "slots", "code"
"""The services, by the names of their sockets."""


@dataclass(frozen=True)
class Keeper:
    """What every service with a store answers, and the caller that makes calls to it last."""

    caller: Caller
    describe: common_pb2_grpc.DescribeServiceAsyncStub
    maintenance: maintenance_pb2_grpc.MaintenanceServiceAsyncStub


@dataclass(frozen=True)
class Clients:
    """Stubs of the services of one home, and the callers that make their calls last."""

    memory: memory_pb2_grpc.MemoryServiceAsyncStub
    records: records_pb2_grpc.RecordsServiceAsyncStub
    slots: slots_pb2_grpc.SlotsServiceAsyncStub
    code: code_pb2_grpc.CodeServiceAsyncStub
    keepers: Mapping[str, Keeper]
    """By the service's name."""

    @property
    def to_memory(self) -> Caller:
        """For calls to the memory service, records included."""
        return self.keepers[MEMORY].caller

    @property
    def to_slots(self) -> Caller:
        """For calls to the slots service."""
        return self.keepers[SLOTS].caller

    @property
    def to_code(self) -> Caller:
        """For calls to the code service."""
        return self.keepers[CODE].caller


@asynccontextmanager
async def open_clients(home: Home) -> AsyncIterator[Clients]:
    """Clients of the home's services. Nothing is connected before the first call."""
    async with (
        open_channel(home, MEMORY) as memory,
        open_channel(home, SLOTS) as slots,
        open_channel(home, CODE) as code,
    ):
        yield Clients(
            memory=memory_pb2_grpc.MemoryServiceStub(memory),
            records=records_pb2_grpc.RecordsServiceStub(memory),
            slots=slots_pb2_grpc.SlotsServiceStub(slots),
            code=code_pb2_grpc.CodeServiceStub(code),
            keepers={
                MEMORY: _keeper(memory, Caller(MEMORY, home=home)),
                SLOTS: _keeper(slots, Caller(SLOTS, home=home)),
                CODE: _keeper(code, Caller(CODE, home=home)),
            },
        )


def _keeper(channel: grpc.aio.Channel, caller: Caller) -> Keeper:
    return Keeper(
        caller=caller,
        describe=common_pb2_grpc.DescribeServiceStub(channel),
        maintenance=maintenance_pb2_grpc.MaintenanceServiceStub(channel),
    )
