"""HTTP servers of the bridge as a person starts them, and what they say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import until

__all__ = ["HttpServer", "refusal"]

_EXIT_SECONDS = 20.0
_SERVING = re.compile(
    r"^muniment-mcp: serving (?P<scheme>https?)://(?P<host>.*):(?P<port>\d+)/mcp$"
)


class HttpServer:
    """One process that serves HTTP on a port of its own choice; it is up when this returns."""

    def __init__(
        self, *arguments: str, cwd: Path, environment: Mapping[str, str], module: str | None = None
    ) -> None:
        """Start `muniment-mcp --http 127.0.0.1:0 ARGUMENTS`.

        Args:
            arguments: Its command line; another `--http` takes the place of that one.
            cwd: Where it is started, which is the project of callers that name none.
            environment: Its environment, besides PATH.
            module: A Python module in its place.
        """
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [
                *_program(module),
                *(() if "--http" in arguments else ("--http", "127.0.0.1:0")),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **environment},
        )
        try:
            found = until(self._serving, "the server serves", seconds=60)
        except AssertionError as error:
            told = f"{error}; it said: {self.said()}"
            self._end()
            raise AssertionError(told) from error
        self.host, self.port = found["host"].strip("[]"), int(found["port"])
        self.is_secure = found["scheme"] == "https"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def url(self) -> str:
        """Where the default profile is."""
        scheme = "https" if self.is_secure else "http"
        return f"{scheme}://{self.host}:{self.port}/mcp"

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(_EXIT_SECONDS)

    def said(self) -> str:
        """What it wrote to standard error so far."""
        self._said.seek(0)
        return self._said.read().decode()

    def _serving(self) -> re.Match[str] | None:
        assert self.process.poll() is None, "the server has ended"
        lines = self.said().splitlines()
        return next((found for line in lines if (found := _SERVING.match(line))), None)

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._said.close()


def refusal(*arguments: str, cwd: Path, environment: Mapping[str, str]) -> str:
    """What `muniment-mcp ARGUMENTS` says that it does not serve, in one line."""
    ended = subprocess.run(
        [*_program(None), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    return line


def _program(module: str | None) -> Sequence[str]:
    if module is not None:
        return (sys.executable, "-m", module)
    return (str(Path(sys.executable).with_name("muniment-mcp")),)
