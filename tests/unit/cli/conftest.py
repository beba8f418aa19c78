"""The command line, run in this process against a home of its own."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muniment.cli.main import run
from muniment.kit.paths import Home

__all__ = ["Ran", "Runner"]


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, parsed."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error that it printed as JSON."""
        error: dict[str, Any] = json.loads(self.err)["error"]
        return error


Runner = Callable[..., Ran]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An empty home, and an environment that says nothing of others."""
    for name in list(os.environ):
        if name.startswith(("MUNIMENT_", "SAKUR4_", "KINT_", "SIBYL_")):
            monkeypatch.delenv(name)
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        yield Home(Path(folder).resolve() / "home")


@pytest.fixture
def read_only(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that once had a supervisor, on what behaves like a read-only file system."""
    home.runtime.mkdir(mode=0o700, parents=True)
    home.path.chmod(0o700)
    (home.runtime / "start.lock").touch(mode=0o600)
    open_, access = os.open, os.access

    def refusing_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return open_(path, flags, *rest, **named)

    def refusing_access(path: Any, mode: int, **named: Any) -> bool:
        return not mode & os.W_OK and access(path, mode, **named)

    monkeypatch.setattr(os, "open", refusing_open)
    monkeypatch.setattr(os, "access", refusing_access)


@pytest.fixture
def muniment(home: Home, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Runs `muniment --home HOME ...`."""

    def runner(*words: str) -> Ran:
        code = run(["--home", str(home.path), *words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return runner
