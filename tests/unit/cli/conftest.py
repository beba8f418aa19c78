"""The command line, run in this process against a home of its own."""

from __future__ import annotations

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
def muniment(home: Home, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Runs `muniment --home HOME ...`."""

    def runner(*words: str) -> Ran:
        code = run(["--home", str(home.path), *words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return runner
