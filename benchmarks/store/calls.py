"""Commits through RPC: a service of its own process, called by writers in two others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.store.commits import Measured
from benchmarks.store.setups import Setup, Shape
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness

__all__ = ["calls"]

_ROOT = Path(__file__).resolve().parent.parent.parent
_CALLERS = 2
_START_SECONDS = 30.0


def calls(setup: Setup | None, shape: Shape, seconds: float, folder: Path) -> Measured:
    """Commit through a service of that setup for so long; without one through an empty service."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        home = Home(Path(place) / "home")
        environment = {
            **os.environ,
            "MUNIMENT_HOME": str(home.path),
            "MUNIMENT_KEY_FOLDER": str(Path(place) / "keys"),
            "MUNIMENT_LOG_LEVEL": "warning",
        }
        if setup is not None and setup.sealed:
            randomness = SystemRandomness()
            shelf = KeyShelf(home, "file", environment["MUNIMENT_KEY_FOLDER"])
            shelf.keep(HomeKey(randomness.token(32), sealed=True), randomness)
        with _service(setup, home, environment) as service:
            return _measure(service, shape, seconds, environment)


@contextmanager
def _service(
    setup: Setup | None, home: Home, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    flags = ["--empty"]
    if setup is not None:
        late, single = setup.late_sync, not setup.batches
        flags = [*(["--late-sync"] if late else []), *(["--one-by-one"] if single else [])]
    service = _start("benchmarks.store.served", flags, environment)
    try:
        end = time.monotonic() + _START_SECONDS
        while not home.socket("memory").exists():
            if time.monotonic() > end or service.poll() is not None:
                raise RuntimeError("the service did not start")
            time.sleep(0.02)
        yield service
    finally:
        service.terminate()
        service.wait(_START_SECONDS)


def _measure(
    service: subprocess.Popen[str], shape: Shape, seconds: float, environment: dict[str, str]
) -> Measured:
    at_once = shape.writers * shape.in_flight
    shares = [at_once // _CALLERS + (one < at_once % _CALLERS) for one in range(_CALLERS)]
    with ExitStack() as ending:
        callers = [
            _start("benchmarks.store.caller", [f"c{one}", str(share), str(seconds)], environment)
            for one, share in enumerate(shares)
            if share
        ]
        for caller in callers:
            ending.callback(caller.kill)
            assert caller.stdout is not None
            caller.stdout.readline()
        cpu_began = _cpu_seconds(service.pid)
        for caller in callers:
            assert caller.stdin is not None
            caller.stdin.write("go\n")
            caller.stdin.flush()
        outcomes = [json.loads(caller.communicate()[0]) for caller in callers]
        cpu_ended = _cpu_seconds(service.pid)
    latencies = [one for outcome in outcomes for one in outcome["latencies"]]
    taken = max(outcome["seconds"] for outcome in outcomes)
    return Measured.of(latencies, taken, cpu_ended - cpu_began)


def _start(module: str, flags: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *flags],
        cwd=_ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _cpu_seconds(pid: int) -> float:
    """Processor time that the process had so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
