"""Runs the suite against a server, and tells what came of each scenario."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.tools import ROOT, node_24

__all__ = ["Run", "required"]

_SUITE = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance"
_SECONDS = 240.0
_WORDS = {
    "SUCCESS": "passed",
    "FAILURE": "failed",
    "WARNING": "warned",
    "SKIPPED": "skipped",
    "INFO": "told",
}


class Run:
    """The suite, running against one server for one revision; or one scenario of it."""

    def __init__(self, url: str, revision: str, folder: Path, scenario: str | None = None) -> None:
        """Start it; what it finds goes into the folder."""
        self._folder = folder
        self._printed = folder / "printed.txt"
        folder.mkdir(parents=True)
        chosen = (
            ["--requirements", revision]
            if scenario is None
            else ["--scenario", scenario, "--spec-version", revision]
        )
        program: list[str | Path] = [node_24(), _SUITE / "dist" / "index.js", "server"]
        with self._printed.open("wb") as printed:
            self._process = subprocess.Popen(
                [*program, "--url", url, *chosen, "--output-dir", folder],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def outcomes(self) -> dict[str, str]:
        """How many checks of each scenario went how, when it is over."""
        self._process.wait(_SECONDS)
        found = {name: _counted(checks) for name, checks in self._scenarios()}
        assert found, self._printed.read_text()
        return found

    def complaints(self, scenario: str) -> str:
        """What the suite holds against the server in that scenario."""
        return "; ".join(
            f"{check['id']} {_WORDS[check['status']]}: {check.get('errorMessage', '')}"
            for name, checks in self._scenarios()
            for check in checks
            if name == scenario and check["status"] in ("FAILURE", "WARNING")
        )

    def _scenarios(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for path in sorted(self._folder.glob("server-*/checks.json")):
            name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", path.parent.name)
            assert name is not None, path
            yield name[1], json.loads(path.read_bytes())


def required(revision: str) -> list[str]:
    """What the suite requires of a server of that revision."""
    text = (_SUITE / "requirements" / f"{revision}.yaml").read_text()
    listed = re.search(r"^server:\n((?:  - .+\n)+)", text, re.MULTILINE)
    assert listed is not None
    return [line.removeprefix("  - ") for line in listed[1].splitlines()]


def _counted(checks: list[dict[str, Any]]) -> str:
    counts = Counter(check["status"] for check in checks)
    told = [f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status]]
    return ", ".join(told) or "nothing"
