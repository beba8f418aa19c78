"""A whole house in a folder of its own: the `muniment` command, and what it starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muniment.kit.paths import Home
from tests.waiting import until

__all__ = ["House", "Ran", "a_house", "is_running"]

_LONGEST_COMMAND_SECONDS = 90


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """What it printed, parsed."""
        return json.loads(self.out)


@dataclass(frozen=True)
class House:
    """Runs commands for a home, in a folder that is the project."""

    home: Home
    project: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(
        self, *words: str, content: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Ran:
        """Run `muniment WORDS`, to its end."""
        ran = subprocess.run(
            [Path(sys.executable).with_name("muniment"), *words],
            input=content,
            capture_output=True,
            check=False,
            cwd=self.project,
            env={**self._variables(), **(environment or {})},
            timeout=_LONGEST_COMMAND_SECONDS,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr.decode())

    def must(self, *words: str, content: bytes = b"") -> Any:
        """Run it with --json, demand success, and parse what it printed."""
        ran = self.run(*words, "--json", content=content)
        assert ran.code == 0, ran.err
        return ran.json

    def recall(self, query: str, *words: str) -> list[dict[str, Any]]:
        """What answers the query once the index is whole: a sealed home's is made at each start."""

        def whole() -> dict[str, Any] | None:
            told: dict[str, Any] = self.must("recall", query, *words)
            return None if any("made anew" in note for note in told["notes"]) else told

        results: list[dict[str, Any]] = until(whole, "the index is whole", seconds=60)["results"]
        return results

    @property
    def key_folder(self) -> Path:
        """Where the home's key is kept."""
        return self.home.path.parent / "keys"

    def service(self, name: str) -> dict[str, Any]:
        """One service as `muniment ps` shows it."""
        services: list[dict[str, Any]] = self.must("ps")
        return next(one for one in services if one["name"] == name)

    def pids(self) -> list[int]:
        """The supervisor's process, and those of its services."""
        return [self.supervisor_pid(), *(one["pid"] for one in self.must("ps") if one["pid"])]

    def supervisor_pid(self) -> int:
        """The supervisor's process."""
        return int((self.home.runtime / "supervisord.pid").read_text())

    def _variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.project),
            "LANG": "C.UTF-8",
            "MUNIMENT_HOME": str(self.home.path),
            # What listens on this machine is not for tests to probe.
            "MUNIMENT_BACKEND": "none",
            "MUNIMENT_KEY_FOLDER": str(self.key_folder),
            **self.environment,
        }


def is_running(pid: int) -> bool:
    """Whether the process runs; one that ended and was not reaped yet does not."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False, text=True
    )
    return bool(shown.stdout.strip()) and not shown.stdout.startswith("Z")


@contextmanager
def a_house(name: str = "home", **environment: str) -> Iterator[House]:
    """A house of that name in a new folder, which is down again after the block."""
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        place = Path(folder).resolve()
        project = place / "project"
        project.mkdir()
        house = House(Home(place / name), project, environment)
        try:
            yield house
        finally:
            assert house.run("down").code == 0
            if not house.home.runtime.is_relative_to(place):
                shutil.rmtree(house.home.runtime, ignore_errors=True)
