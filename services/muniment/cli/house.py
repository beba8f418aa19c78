"""Starting, stopping and watching the services of a home."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from muniment.cli.output import Json, print_json, print_text, progress
from muniment.cli.services import (
    NOT_RUNNING,
    as_json,
    check_name,
    list_services,
    print_services,
    service_names,
)
from muniment.cli.supervisor_client import ServiceProcess, SupervisorClient
from muniment.kit.clock import SystemClock
from muniment.kit.errors import TimedOutError, UnavailableError
from muniment.kit.paths import Home
from muniment.kit.supervise import (
    SUPERVISOR,
    end_leftovers,
    ensure_running,
    remove_leftovers,
    supervisor_lives,
)

__all__ = [
    "START_SECONDS",
    "UP_SECONDS",
    "down",
    "ps",
    "restart",
    "start_services",
    "stop_services",
    "up",
]

START_SECONDS = 10.0
"""How long a supervisor may take to answer."""

UP_SECONDS = 30.0
"""How long the services may take to answer: all of them start at once."""

_DRAIN_SECONDS = 15.0
# Four services, at most 15 s each before supervisord kills them, and its own end.
_DOWN_SECONDS = 70.0
_POLL_SECONDS = 0.05


def up(context: typer.Context, json: Json = False) -> None:
    """Start the services and wait until they answer.

    Services that run are left alone; one that was given up on is tried again.
    """
    home: Home = context.obj
    lives = supervisor_lives(home)
    with progress("waiting for the services" if lives else "starting the services"):
        begun, again, services = start_services(home)
    if json:
        print_json({"started": begun or bool(again), "services": as_json(home, services)})
        return
    some = f"started {', '.join(again)}" if again else "already running"
    print_text("started" if begun else some)
    print_services(home, services)


def start_services(home: Home) -> tuple[bool, list[str], list[ServiceProcess]]:
    """Start what does not run and wait until it answers.

    Whether the supervisor was started, or else which services; and all of them.

    Raises:
        MunimentError: One cannot start, or takes too long.
    """
    # gRPC takes a third of a second to import, and most commands do without.
    from muniment.cli.health import wait_until_healthy

    begun = ensure_running(home, deadline_seconds=START_SECONDS)
    names = [one.name for one in list_services(home)]
    again = [] if begun else _start(home, names)
    services = asyncio.run(wait_until_healthy(home, names, deadline_seconds=UP_SECONDS))
    return begun, again, services


def down(context: typer.Context, json: Json = False) -> None:
    """Stop the services and the supervisor, and wait until they are gone.

    Calls that run are let finish first, for some seconds.
    """
    home: Home = context.obj
    with progress("stopping the services"):
        stopped = stop_services(home)
    if json:
        print_json({"stopped": stopped})
    else:
        print_text("stopped" if stopped else "nothing was running")


def stop_services(home: Home) -> bool:
    """Stop everything of the home and wait until it is gone. False where nothing ran.

    Raises:
        MunimentError: Something does not stop.
    """
    stopped = supervisor_lives(home)
    if stopped:
        _shut_down(home)
    stopped |= end_leftovers(home, deadline_seconds=_DRAIN_SECONDS)
    if home.socket(SUPERVISOR).exists():
        remove_leftovers(home)
    return stopped


def ps(context: typer.Context, json: Json = False) -> None:
    """List the services, running or not."""
    home: Home = context.obj
    services = list_services(home)
    if json:
        print_json(as_json(home, services))
    else:
        print_services(home, services)


def restart(
    context: typer.Context,
    service: Annotated[str, typer.Argument(help="A service's name, or `all`.")],
    json: Json = False,
) -> None:
    """Stop a service, start it again, and wait until it answers.

    The supervisor and the environment that it was started with stay.
    """
    from muniment.cli.health import wait_until_healthy

    home: Home = context.obj
    check_name(home, service, "all")
    names = service_names(home) if service == "all" else [service]
    with progress(f"restarting {', '.join(names)}"):
        _stop(home, names)
        _start(home, names)
        services = asyncio.run(wait_until_healthy(home, names, deadline_seconds=UP_SECONDS))
    if json:
        print_json(as_json(home, services))
    else:
        print_services(home, services)


def _start(home: Home, names: Sequence[str]) -> list[str]:
    """Begin to start those of the services that do not run; return which."""
    client = SupervisorClient(home)
    states = {one.name: one.state for one in client.processes()}
    stopped = [name for name in names if states.get(name) in NOT_RUNNING]
    for name in stopped:
        client.start(name)
    return stopped


def _stop(home: Home, names: Sequence[str]) -> None:
    client = SupervisorClient(home)
    for name in reversed(names):
        client.stop(name)

    def stopped() -> bool:
        states = {one.name: one.state for one in client.processes()}
        return all(states.get(name) in NOT_RUNNING for name in names)

    _wait(stopped, f"{', '.join(names)} did not stop")


def _shut_down(home: Home) -> None:
    asked = False

    def gone() -> bool:
        nonlocal asked
        if not asked:
            try:
                SupervisorClient(home).shutdown()
                asked = True
            except UnavailableError:
                pass  # It is starting, or going already.
        return not supervisor_lives(home)

    _wait(gone, "the supervisor did not stop")


def _wait(done: Callable[[], bool], complaint: str) -> None:
    clock = SystemClock()
    end = clock.monotonic() + _DOWN_SECONDS
    while not done():
        if clock.monotonic() >= end:
            raise TimedOutError(
                f"{complaint} within {_DOWN_SECONDS:g} s",
                reason="STOP_TIMED_OUT",
                fix="see `muniment logs supervisord`",
            )
        time.sleep(_POLL_SECONDS)
