"""Which services a home has, and what the supervisor says of each."""

from __future__ import annotations

import configparser
from pathlib import Path

from muniment.cli.output import print_table
from muniment.cli.supervisor_client import ServiceProcess, SupervisorClient
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.paths import Home
from muniment.kit.supervise import shipped_configuration, supervisor_lives

__all__ = [
    "GIVEN_UP",
    "NOT_RUNNING",
    "as_json",
    "check_name",
    "list_services",
    "print_services",
    "reason_of_failure",
    "service_names",
    "shipped_services",
]

GIVEN_UP = frozenset({"EXITED", "FATAL"})
"""States that the supervisor does not leave by itself."""

NOT_RUNNING = GIVEN_UP | {"STOPPED"}

_PROGRAM = "program:"


def service_names(home: Home) -> list[str]:
    """What the supervisor's files name, in their order: the shipped one, then conf.d."""
    return _programs(shipped_configuration(), *sorted((home.runtime / "conf.d").glob("*.conf")))


def shipped_services() -> list[str]:
    """The services that every home has."""
    return _programs(shipped_configuration())


def _programs(*files: Path) -> list[str]:
    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(";", "#"))
    parser.read(files)
    sections = [name for name in parser.sections() if name.startswith(_PROGRAM)]
    return [name.removeprefix(_PROGRAM) for name in sections]


def check_name(home: Home, name: str, *others: str) -> None:
    """Refuse what is neither a service of the home nor one of the other words.

    Raises:
        InvalidArgumentError: It lists what there is.
    """
    names = [*service_names(home), *others]
    if name not in names:
        raise InvalidArgumentError(
            f"no service is called {name}",
            reason="SERVICE_UNKNOWN",
            field="service",
            fix=f"use one of {', '.join(names)}",
        )


def list_services(home: Home) -> list[ServiceProcess]:
    """The services of the home, all STOPPED where no supervisor runs.

    Raises:
        UnavailableError: There is a supervisor, but it does not answer.
    """
    if not supervisor_lives(home):
        return [ServiceProcess(name, "STOPPED") for name in service_names(home)]
    return SupervisorClient(home).processes()


def reason_of_failure(home: Home, name: str) -> str | None:
    """What a service that could not start left as its reason, one line."""
    try:
        return home.why(name).read_text(errors="replace").strip() or None
    except OSError:
        return None


def as_json(home: Home, services: list[ServiceProcess]) -> list[dict[str, object]]:
    """Services as JSON objects; `why` is present only where one gave a reason for not running."""
    objects = []
    for one in services:
        told: dict[str, object] = {
            "name": one.name,
            "state": one.state,
            "pid": one.pid,
            "uptime_seconds": one.uptime_seconds,
        }
        why = _why(home, one)
        objects.append(told | {"why": why} if why else told)
    return objects


def print_services(home: Home, services: list[ServiceProcess]) -> None:
    """Print services as a table."""
    rows = [
        [
            one.name,
            one.state,
            "-" if one.pid is None else str(one.pid),
            "-" if one.uptime_seconds is None else _duration(one.uptime_seconds),
            _why(home, one) or "",
        ]
        for one in services
    ]
    print_table(["name", "state", "pid", "uptime", "why"], rows)


def _why(home: Home, service: ServiceProcess) -> str | None:
    return None if service.state == "RUNNING" else reason_of_failure(home, service.name)


def _duration(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}h"
    if hours:
        return f"{hours}h {minute}m"
    return f"{minutes}m {second}s" if minutes else f"{second}s"
