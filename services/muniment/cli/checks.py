"""What is wrong with a home, what may become wrong, and what to do about it."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from muniment.cli.findings import Finding
from muniment.cli.harnesses import bridge_command
from muniment.cli.health import KEEPERS, answers, failure, is_healthy
from muniment.cli.server_checks import check_servers
from muniment.cli.services import GIVEN_UP, list_services, reason_of_failure, service_names
from muniment.cli.supervisor_client import ServiceProcess
from muniment.kit.errors import MunimentError
from muniment.kit.home_key import KeyShelf
from muniment.kit.paths import Home
from muniment.kit.settings import (
    PREDECESSOR_VARIABLES,
    explain,
    load_settings,
    unknown_variables,
)
from muniment.kit.supervise import supervisor_lives
from muniment.v1 import common_pb2
from muniment.workflows.clients import SLOTS, open_clients
from muniment.workflows.status import describe_service

__all__ = ["examine"]

_MIB, _GIB = 1024**2, 1024**3
_DISK_WARNING_BYTES = _GIB
_DISK_PROBLEM_BYTES = 100 * _MIB

_NAMING_SERVERS = frozenset({"backend", "llama_url", "servers"})
"""Settings that name inference servers."""

_START_SECONDS = 15
"""How long a service may take until it answers."""

_PREDECESSORS = ("KINT_", "SAKUR4_", "SIBYL_")
_OTHER_STORE = "SIBYL_MEMORY_DB"
_UNDERSTOOD = frozenset(
    {
        _OTHER_STORE,
        "KINT_TENANT",
        "SAKUR4_LLAMA_API_KEY",
        "SAKUR4_PROJECT_ROOT",
        "SAKUR4_SESSION",
        *PREDECESSOR_VARIABLES,
    }
)


async def examine(home: Home) -> list[Finding]:
    """Look at the installation, the home, the settings and the services, in this order."""
    unusable = list(_check_place(home))
    findings = [
        _check_version(),
        _check_bridge(),
        *(unusable or _check_modes(home)),
        _check_disk(home),
        *_check_settings(home),
        *_check_key(home),
        *_check_variables(),
        *_check_other_store(),
    ]
    services = [finding async for finding in _check_services(home)]
    # "None runs; the first call starts it" would be untrue of a home that cannot be used.
    return findings + [one for one in services if not unusable or one.level != "ok"]


def _check_version() -> Finding:
    installed = f"muniment {version('muniment')}, supervisor {version('supervisor')}"
    return Finding("version", "ok", f"{installed}, Python {platform.python_version()}")


def _check_bridge() -> Finding:
    command = bridge_command()
    if command is None:
        return Finding(
            "bridge", "problem", "muniment-mcp is not installed", "install muniment again"
        )
    return Finding("bridge", "ok", f"harnesses spawn {command}")


def _check_place(home: Home) -> Iterator[Finding]:
    """What keeps the home from being made, or written to."""
    place = _nearest(home.path)
    if not place.is_dir():
        told, fix = f"{place} is not a folder", "move it away"
    elif not os.access(place, os.W_OK | os.X_OK):
        told, fix = f"nothing can be written to {place}", "make it writable"
    else:
        return
    told = told if place == home.path else f"{home.path} cannot be made: {told}"
    fix = f"{fix}, or choose another home with MUNIMENT_HOME"
    yield Finding("folders", "problem", told, fix)


def _nearest(path: Path) -> Path:
    """The path, or the nearest above it that exists."""
    for candidate in (path, *path.parents):
        with suppress(OSError):
            candidate.stat()
            return candidate
    return Path(path.anchor)


def _check_modes(home: Home) -> Iterator[Finding]:
    if not home.path.exists():
        yield Finding("folders", "ok", f"{home.path} does not exist yet; the first call makes it")
        return
    folders = {home.runtime, home.logs, *map(home.data, service_names(home))}
    if not home.runtime.is_relative_to(home.path):
        folders.add(home.runtime.parent)
    at_home = _check_mode(home.path, 0o700)
    wrong = [
        # What is in it is private all the same, so a home may be a folder that others see.
        *([replace(at_home, level="warning")] if at_home else []),
        *(finding for path in sorted(folders) if (finding := _check_mode(path, 0o700))),
        *(
            finding
            for path in sorted(home.runtime.glob("*.sock"))
            if (finding := _check_mode(path, 0o600))
        ),
    ]
    yield from wrong
    if not wrong:
        yield Finding("folders", "ok", f"only you can read {home.path} and {home.runtime}")


def _check_mode(path: Path, most: int) -> Finding | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid() or stat.S_ISLNK(found.st_mode):
        told = "is a link" if stat.S_ISLNK(found.st_mode) else "belongs to another user"
        fix = "remove it, or choose another home"
        return Finding("folders", "problem", f"{path} {told}", fix)
    if mode & 0o077:
        told = f"others can use {path} (mode {mode:o})"
        return Finding("folders", "problem", told, f"chmod {most:o} {shlex.quote(str(path))}")
    return None


def _check_disk(home: Home) -> Finding:
    place = _nearest(home.path)
    free = shutil.disk_usage(place).free
    size = f"{free / _GIB:.1f} GiB" if free >= _GIB else f"{free / _MIB:.0f} MiB"
    told = f"{size} are free at {place}"
    if free < _DISK_PROBLEM_BYTES:
        return Finding("disk", "problem", told, "make room: writes will be refused soon")
    if free < _DISK_WARNING_BYTES:
        return Finding("disk", "warning", told, "make room")
    return Finding("disk", "ok", told)


def _check_settings(home: Home) -> Iterator[Finding]:
    try:
        settings = explain(home)
    except MunimentError as error:
        told = error.message if error.field is None else f"{error.field}: {error.message}"
        yield Finding("settings", "problem", told, error.fix)
        return
    changed = [one.name for one in settings if one.origin != "default"]
    yield Finding("settings", "ok", f"changed from the default: {', '.join(changed) or 'none'}")


def _check_key(home: Home) -> Iterator[Finding]:
    """Key files, and the folder of them, that others can read or write."""
    try:
        settings = load_settings(home)
        if settings.key_store != "file":
            return
        key = Path(KeyShelf(home, settings.key_store, settings.key_folder).where)
    except MunimentError:
        return  # The settings or the service that needs the key tell.
    if key.suffix != ".key":
        return  # The home has none yet.
    # The earlier ones too: they open backups.
    for path in (key.parent, *sorted(key.parent.glob(f"{key.stem}*.key"))):
        # Links are followed: where a key is kept is its owner's choice.
        with suppress(OSError):
            mode, most = stat.S_IMODE(path.stat().st_mode), 0o700 if path.is_dir() else 0o600
            if mode & 0o077:
                told = f"others can use {path} (mode {mode:o})"
                yield Finding("key", "problem", told, f"chmod {most:o} {shlex.quote(str(path))}")


def _check_variables() -> Iterator[Finding]:
    predecessors = [
        name
        for name in sorted(os.environ)
        if name.startswith(_PREDECESSORS) and name not in _UNDERSTOOD
    ]
    for name in (*unknown_variables(), *predecessors):
        told = f"the variable {name} means nothing here and changes nothing"
        yield Finding("environment", "warning", told, "unset it, or correct its name")


def _check_other_store() -> Iterator[Finding]:
    named = os.environ.get(_OTHER_STORE)
    if named and Path(named).exists():
        take = f"muniment records import-from {shlex.quote(named)}"
        told = (
            f"{_OTHER_STORE} names {named}: another program's store, never written from here;"
            f" to take its records over: {take}"
        )
        yield Finding("environment", "ok", told)
    elif named:
        told = f"{_OTHER_STORE} names {named}, which does not exist"
        yield Finding("environment", "warning", told, "unset it, or correct the path")


async def _check_services(home: Home) -> AsyncIterator[Finding]:
    try:
        lives = supervisor_lives(home)
        services = list_services(home)
    except MunimentError as error:
        yield Finding("supervisor", "problem", error.message, error.fix)
        return
    if not lives:
        async for finding in _check_leftovers(home):
            yield finding
        return
    yield Finding("supervisor", "ok", f"answers on {home.socket('supervisor')}")
    for service in services:
        async for finding in _check_service(home, service):
            yield finding


async def _check_leftovers(home: Home) -> AsyncIterator[Finding]:
    """What there is without a supervisor."""
    names = service_names(home)
    left = [name for name in names if await answers(home, name)]
    if left:
        told = f"it was killed, and {', '.join(left)} went on without it"
        yield Finding("supervisor", "problem", told, "`muniment up` replaces them all")
    else:
        told = "none runs; the first call of a harness starts it, and so does `muniment up`"
        yield Finding("supervisor", "ok", told)
    for name in names:
        if name not in left and (why := reason_of_failure(home, name)):
            told = f"could not start the last time: {why}"
            yield Finding(name, "problem", told, "then run `muniment up`")


async def _check_service(home: Home, service: ServiceProcess) -> AsyncIterator[Finding]:
    name = service.name
    if service.state in GIVEN_UP:
        error = failure(home, service)
        yield Finding(name, "problem", error.message, error.fix)
        return
    if not await is_healthy(home, service):
        yield _unanswered(service)
        return
    if name not in KEEPERS:
        yield Finding(name, "ok", f"answers (pid {service.pid})")
        return
    async with open_clients(home) as clients:
        try:
            described = await describe_service(clients, name)
        except MunimentError as error:
            yield Finding(name, "problem", error.message, error.fix)
            return
        yield Finding(name, "ok", f"answers (pid {service.pid}){_store(described)}")
        compared = (*_compare_version(name, described), *_compare_settings(home, name, described))
        for finding in compared:
            yield finding
        if name == SLOTS:
            for finding in await check_servers(clients, are_configured=_names_servers(home)):
                yield finding


def _names_servers(home: Home) -> bool:
    """Whether somebody named an inference server, or said which is meant."""
    try:
        settings = explain(home)
    except MunimentError:
        return True  # The service has settings; that these cannot be read is told already.
    return any(one.origin != "default" for one in settings if one.name in _NAMING_SERVERS)


def _unanswered(service: ServiceProcess) -> Finding:
    seconds = service.uptime_seconds
    if seconds is not None and seconds < _START_SECONDS:
        told = f"started {seconds} s ago and does not answer yet"
        return Finding(service.name, "warning", told, "run `muniment doctor` again in a moment")
    told = f"does not answer (state {service.state})"
    return Finding(service.name, "problem", told, f"see `muniment logs {service.name}`")


def _store(described: common_pb2.DescribeResponse) -> str:
    if not described.HasField("store"):
        return ""
    store = described.store
    behind = store.change_position - store.index_position
    index = f"index {behind} changes behind" if behind > 0 else "index up to date"
    return (
        f"; store {store.path}, schema {store.schema_version}, "
        f"{store.change_position} changes, {store.size_bytes / _MIB:.1f} MiB, {index}"
    )


def _compare_version(name: str, described: common_pb2.DescribeResponse) -> Iterator[Finding]:
    if described.version != version("muniment"):
        told = f"runs version {described.version}, {version('muniment')} is installed"
        yield Finding(name, "warning", told, f"`muniment restart {name}`")


def _compare_settings(
    home: Home, name: str, described: common_pb2.DescribeResponse
) -> Iterator[Finding]:
    """Where the environment of this command and that of the service disagree."""
    try:
        here = {one.name: one for one in explain(home)}
    except MunimentError:
        return  # Told already.
    for there in described.settings:
        own = here.get(there.name)
        if own is None or own.value == there.value:
            continue
        told = (
            f"{there.name} is {there.value} in the service ({there.origin}) "
            f"and {own.value} here ({own.origin})"
        )
        # A restarted service keeps the environment of its supervisor.
        by_environment = "environment" in (there.origin, own.origin)
        cure = (
            "`muniment down`, then `muniment up`"
            if by_environment
            else (f"`muniment restart {name}`")
        )
        yield Finding(name, "warning", told, cure)
