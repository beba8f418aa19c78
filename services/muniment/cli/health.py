"""Whether services are up: not only alive, but answering."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from muniment.cli.services import GIVEN_UP, list_services, reason_of_failure
from muniment.cli.supervisor_client import ServiceProcess
from muniment.kit.channels import open_channel
from muniment.kit.clock import SystemClock
from muniment.kit.errors import PreconditionError, TimedOutError
from muniment.kit.paths import Home
from muniment.workflows.clients import CODE, MEMORY, SLOTS

__all__ = ["KEEPERS", "answers", "failure", "is_healthy", "wait_until_healthy"]

KEEPERS = (MEMORY, SLOTS, CODE)
"""The services that have a store, and say how they fare."""

_WORKER = "worker"
_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.1


async def is_healthy(home: Home, service: ServiceProcess) -> bool:
    """Whether the service runs, and answers if it is one of those that listen."""
    if service.pid is None:
        return False
    if service.name in (*KEEPERS, _WORKER):
        return await answers(home, service.name)
    return service.state == "RUNNING"


async def answers(home: Home, name: str) -> bool:
    """Whether somebody answers on the service's socket."""
    return await (_serves(home, name) if name in KEEPERS else _accepts(home, name))


async def _serves(home: Home, name: str) -> bool:
    async with open_channel(home, name) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # Its types leave the methods out.
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def _accepts(home: Home, name: str) -> bool:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            _, writer = await asyncio.open_unix_connection(home.socket(name))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def wait_until_healthy(
    home: Home, names: Collection[str], *, deadline_seconds: float
) -> list[ServiceProcess]:
    """Wait until the named services are past their start and healthy; return all of the home's.

    Raises:
        PreconditionError: The supervisor has given up on one of them.
        TimedOutError: One is not healthy within the deadline.
    """
    clock = SystemClock()
    end = clock.monotonic() + deadline_seconds
    waiting = set(names)
    while True:
        services = list_services(home)
        for one in (one for one in services if one.name in waiting):
            if one.state in GIVEN_UP:
                raise failure(home, one)
            if one.state == "RUNNING" and await is_healthy(home, one):
                waiting.remove(one.name)
        if not waiting:
            return services
        if clock.monotonic() >= end:
            late = [f"{one.name} ({one.state})" for one in services if one.name in waiting]
            raise TimedOutError(
                f"not up within {deadline_seconds:g} s: {', '.join(late)}",
                reason="SERVICE_NOT_UP",
                fix="see `muniment doctor`",
            )
        await asyncio.sleep(_POLL_SECONDS)


def failure(home: Home, service: ServiceProcess) -> PreconditionError:
    """The error for a service that the supervisor has given up on."""
    why = reason_of_failure(home, service.name) or "it ended at once, again and again"
    return PreconditionError(
        f"{service.name} cannot start: {why}",
        reason="SERVICE_GIVEN_UP",
        # A supervisor keeps the environment that it was started with.
        fix=f"`muniment logs {service.name}` tells more; then run `muniment up`,"
        " after `muniment down` where a variable was changed",
    )
