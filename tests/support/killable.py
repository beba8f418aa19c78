"""A memory service in a process of its own, which dies where a test tells it to."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.context import CallContext
from muniment.kit.faults import VARIABLE
from muniment.workflows import pins
from muniment.workflows.clients import Clients, open_clients
from tests.support.homes import clean_environment
from tests.support.memory_process import MemoryHome

__all__ = ["Killable"]

_START_SECONDS = 60.0


@dataclass(frozen=True)
class Killable:
    """A memory service in a process of its own, which dies where it is told to."""

    home: MemoryHome
    faults: Path

    @asynccontextmanager
    async def running(self, *, dies: bool = False) -> AsyncIterator[Clients]:
        """The service for the block; or, where it dies, until then."""
        process = self._start()
        try:
            async with open_clients(self.home.home) as clients:
                await pins.list_pins(
                    clients, CallContext("proj_none"), deadline_seconds=_START_SECONDS
                )
                yield clients
        finally:
            if not dies:
                process.send_signal(signal.SIGTERM)
            expected = -signal.SIGKILL if dies else 0
            assert process.wait(60) == expected, self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.faults.with_name("memory.log")

    def _start(self) -> subprocess.Popen[bytes]:
        environment = clean_environment() | {
            "MUNIMENT_HOME": str(self.home.home.path),
            "MUNIMENT_KEY_FOLDER": str(self.home.keys),
            VARIABLE: str(self.faults),
        }
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "muniment.memory"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def arm(self, point: str, visit: int = 1) -> None:
        """Let the service die there, once, on that visit."""
        (self.faults / point).write_text(str(visit))

    def demand_visited(self) -> None:
        """Fail where a point was armed and never reached."""
        assert not list(self.faults.iterdir())
