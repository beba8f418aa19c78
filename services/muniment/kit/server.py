"""A service's process: its gRPC server from start to drained stop.

On a unix socket with local credentials, in a folder that only its owner may enter. Health,
reflection and Describe are served beside the contract.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from muniment.kit.clock import Clock, SystemClock
from muniment.kit.errors import MunimentError, PreconditionError
from muniment.kit.files import private_folder, replace_file
from muniment.kit.home_key import KeyShelf
from muniment.kit.interceptors import interceptors
from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.logging import Pseudonym, configure_logging
from muniment.kit.maintenance import MaintenanceServicer
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.kit.settings import Settings, explain, load_settings
from muniment.kit.store import Store
from muniment.v1 import common_pb2, common_pb2_grpc, maintenance_pb2, maintenance_pb2_grpc

__all__ = [
    "CANNOT_START",
    "THREAD_SWITCH_SECONDS",
    "Service",
    "described",
    "forget_failure",
    "free_socket",
    "limits_in",
    "pseudonym_of",
    "run_process",
    "serve",
]

CANNOT_START = 78
"""Exit code (EX_CONFIG of sysexits.h) after which supervisord does not try again."""

THREAD_SWITCH_SECONDS = 0.0002
"""How long a busy thread may keep the others waiting. Python's own 5 ms would be added to each
statement of the index and each sync while another thread computes."""

# An exit before supervisord's startsecs counts as a crash and is tried again.
_LEAST_LIFE_SECONDS = 1.2

_log = structlog.get_logger()


@dataclass(frozen=True)
class Service:
    """What a service brings to its server."""

    name: str
    contracts: tuple[str, ...]
    """Full names of its gRPC services."""
    register: Callable[[grpc.aio.Server], None]
    limits: Mapping[str, int] = field(default_factory=dict)
    describe_store: Callable[[], common_pb2.StoreDescription] | None = None
    maintenance: MaintenanceServicer | None = None
    """What keeps its store, where it has one."""
    stopping: Callable[[], None] = lambda: None
    """Called when it begins to drain: lets go who waits for what may never come."""


def limits_in(*modules: ModuleType) -> dict[str, int]:
    """The named numbers of the modules, as callers are told them."""
    return {
        name.lower(): value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, int)
    }


def described(store: Store, index_position: int) -> common_pb2.StoreDescription:
    """What callers are told of a store."""
    return common_pb2.StoreDescription(
        path=str(store.path),
        schema_version=store.schema.version,
        change_position=store.position,
        index_position=index_position,
        size_bytes=store.size_bytes(),
    )


class _DescribeServicer(common_pb2_grpc.DescribeServiceServicer):
    def __init__(self, service: Service, home: Home, metrics: Metrics) -> None:
        self._service = service
        self._metrics = metrics
        self._settings = [
            common_pb2.SettingDescription(name=one.name, value=one.value, origin=one.origin)
            for one in explain(home)
        ]

    async def Describe(
        self,
        request: common_pb2.DescribeRequest,
        context: grpc.aio.ServicerContext[common_pb2.DescribeRequest, common_pb2.DescribeResponse],
    ) -> common_pb2.DescribeResponse:
        describe_store = self._service.describe_store
        return common_pb2.DescribeResponse(
            service=self._service.name,
            version=version("muniment"),
            contracts=["muniment.v1"],
            pid=os.getpid(),
            store=await asyncio.to_thread(describe_store) if describe_store else None,
            limits=dict(self._service.limits),
            settings=self._settings,
        )

    async def GetMetrics(
        self,
        request: common_pb2.GetMetricsRequest,
        context: grpc.aio.ServicerContext[
            common_pb2.GetMetricsRequest, common_pb2.GetMetricsResponse
        ],
    ) -> common_pb2.GetMetricsResponse:
        return common_pb2.GetMetricsResponse(text=self._metrics.render())


async def serve(service: Service, home: Home, settings: Settings, clock: Clock) -> None:
    """Serve until SIGTERM or SIGINT, then let running calls finish.

    Raises:
        PreconditionError: Another process serves this socket.
    """
    path = home.socket(service.name)
    free_socket(path)
    metrics = Metrics(service.name)
    server = grpc.aio.server(
        interceptors=interceptors(metrics, clock),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ],
    )
    service.register(server)
    contracts = [*service.contracts, _full_name(common_pb2, "DescribeService")]
    if service.maintenance is not None:
        maintenance_pb2_grpc.add_MaintenanceServiceServicer_to_server(service.maintenance, server)
        contracts.append(_full_name(maintenance_pb2, "MaintenanceService"))
    common_pb2_grpc.add_DescribeServiceServicer_to_server(
        _DescribeServicer(service, home, metrics), server
    )
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    names = (*contracts, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    for name in contracts:
        await health.set(name, health_pb2.HealthCheckResponse.SERVING)
    server.add_secure_port(
        f"unix:{path}", grpc.local_server_credentials(grpc.LocalConnectionType.UDS)
    )
    stop = _stop_event()
    await server.start()
    path.chmod(0o600)
    forget_failure(home, service.name)
    _log.info("serving", socket=str(path))
    await stop.wait()
    _log.info("draining", seconds=settings.drain_seconds)
    service.stopping()
    # Clients see NOT_SERVING before the door closes.
    await health.enter_graceful_shutdown()
    await server.stop(settings.drain_seconds)
    path.unlink(missing_ok=True)
    _log.info("stopped")


def _full_name(contract: ModuleType, service: str) -> str:
    name: str = contract.DESCRIPTOR.services_by_name[service].full_name
    return name


def _stop_event() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def free_socket(path: Path) -> None:
    """Remove a socket that nobody serves any more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise PreconditionError(
        f"another process serves {path}",
        reason="SOCKET_IN_USE",
        fix="stop it with `muniment down`, or choose another home with MUNIMENT_HOME",
    )


def forget_failure(home: Home, service: str) -> None:
    """Take back the reason of an earlier failure: the service is up."""
    home.why(service).unlink(missing_ok=True)


def run_process(name: str, main: Callable[[Home, Settings], Coroutine[Any, Any, None]]) -> None:
    """Run a service's process, and end it in the way that supervisord understands.

    `main` serves until it is told to stop. A known cause of failure is logged, left
    for `muniment doctor` in the runtime folder, and ends the process with CANNOT_START.
    """
    os.umask(0o077)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    # A core file would have the store's key and what was said.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    clock = SystemClock()
    began = clock.monotonic()
    home = Home.locate()
    configure_logging(name, "info", pseudonym=_no_name)
    try:
        private_folder(home.path, keep_mode=True)
        private_folder(home.runtime)
        settings = load_settings(home)
        configure_logging(name, settings.log_level, pseudonym=pseudonym_of(home, settings))
        asyncio.run(main(home, settings))
    except KeyboardInterrupt:
        return
    except MunimentError as error:
        _log.error("cannot start", reason=error.reason, message=str(error))
        with suppress(OSError):
            replace_file(home.why(name), f"{error}\n".encode())
        _wait_until(began + _LEAST_LIFE_SECONDS, clock)
        sys.exit(CANNOT_START)


def pseudonym_of(home: Home, settings: Settings) -> Pseudonym | None:
    """What discreet logs put in place of names; None for a home that is not sealed."""
    try:
        shelf = KeyShelf(home, settings.key_store, settings.key_folder)
        keys = [key for key in (shelf.load(), shelf.load_next()) if key is not None]
    except MunimentError:
        # Whoever needs the key says why it cannot be had.
        return _no_name
    return next((key.pseudonym for key in keys if key.sealed), None)


def _no_name(text: str) -> str:
    return "~"


def _wait_until(moment: float, clock: Clock) -> None:
    threading.Event().wait(max(0.0, moment - clock.monotonic()))
