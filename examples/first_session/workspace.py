"""The folders that the session needs, and the command line `muniment` in their home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CommandError", "Workspace", "bridge_command", "prepare"]

_FIXTURE = Path(__file__).resolve().parent / "repository"

# What a caller's shell may say of another home, project, session or repository.
_FOREIGN = ("MUNIMENT_", "SAKUR4_", "KINT_", "CLAUDE_", "GIT_")

# A home that is deeper gets its sockets elsewhere, where nobody would clear them away.
_LONGEST_TEMPORARY_FOLDER_BYTES = 40

_COMMAND_SECONDS = 60.0


class CommandError(Exception):
    """A `muniment` command failed; says which, and what it said last."""


@dataclass(frozen=True)
class Workspace:
    """A throw-away folder with a copy of the repository, and the home to play in."""

    folder: Path
    home: Path
    owns_home: bool
    """The home is in the folder and ends with it."""

    @property
    def repository(self) -> Path:
        """The copied repository, where the agent works."""
        return self.folder / "chandler"

    @property
    def bridge_log(self) -> Path:
        """What the bridge writes to its standard error."""
        return self.folder / "bridge.log"

    @property
    def player_log(self) -> Path:
        """What the MCP client has to say."""
        return self.folder / "player.log"

    def processes(self) -> list[dict[str, Any]]:
        """Return the home's services, as `muniment ps` lists them."""
        return self._listed("ps")

    @property
    def variables(self) -> dict[str, str]:
        """What makes processes use the home; the key of one of its own goes with it."""
        home = {"MUNIMENT_HOME": str(self.home)}
        keys = {"MUNIMENT_KEY_FOLDER": str(self.folder / "keys")} if self.owns_home else {}
        return home | keys

    def process(self, service: str) -> dict[str, Any] | None:
        """Return one service of the home."""
        return next((row for row in self.processes() if row.get("name") == service), None)

    def episodes(self) -> list[dict[str, Any]]:
        """Return everything that the repository's project remembers, without the contents."""
        return self._listed("episodes")

    def last_words_of_the_bridge(self) -> str:
        """Return the last line that the bridge wrote to its standard error."""
        try:
            lines = self.bridge_log.read_text(encoding="utf-8", errors="replace").split("\n")
        except FileNotFoundError:
            lines = []
        return next((line for line in reversed(lines) if line.strip()), "nothing")

    def stop_services(self) -> None:
        """Stop the home's services, and wait for them.

        Raises:
            CommandError: They did not stop.
        """
        self._run("down")

    def remove(self) -> None:
        """Delete the folder, and with it the home if it is in there."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listed(self, command: str) -> list[dict[str, Any]]:
        output = self._run(command, "--json")
        try:
            rows = json.loads(output)
        except json.JSONDecodeError as error:
            raise CommandError(f"`muniment {command} --json` printed no JSON") from error
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise CommandError(f"`muniment {command} --json` printed no list of objects")
        return rows

    def _run(self, *arguments: str) -> str:
        name = f"`muniment {' '.join(arguments)}`"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "muniment.cli", *arguments],
                cwd=self.repository,
                env=_own_environment() | self.variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_COMMAND_SECONDS,
                # Ctrl-C is for the player, which then still needs this command to tidy up.
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandError(f"{name} did not end within {_COMMAND_SECONDS:.0f} s") from error
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip() or "nothing"
            raise CommandError(f"{name} exited with {done.returncode}: {said.splitlines()[-1]}")
        return done.stdout


def prepare(home: Path | None) -> Workspace:
    """Copy the repository into a new folder, and choose the home.

    Args:
        home: Play in this home, and leave it and its services as they are. Absent: a new one.
    """
    deep = len(os.fsencode(tempfile.gettempdir())) > _LONGEST_TEMPORARY_FOLDER_BYTES
    folder = Path(tempfile.mkdtemp(prefix="muniment-", dir="/tmp" if deep else None)).resolve()
    own = folder / "home"
    workspace = Workspace(folder, home.expanduser().resolve() if home else own, home is None)
    shutil.copytree(
        _FIXTURE,
        workspace.repository,
        ignore=shutil.ignore_patterns("__pycache__", ".*_cache"),
    )
    # Without git the folder itself is the project, which does as well.
    if git := shutil.which("git"):
        subprocess.run(
            [git, "init", "--quiet"],
            cwd=workspace.repository,
            env=_own_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    return workspace


def bridge_command() -> list[str]:
    """Return what a harness would spawn: `muniment-mcp`, or its module where it has no script."""
    script = Path(sys.executable).with_name("muniment-mcp")
    return [str(script)] if script.exists() else [sys.executable, "-m", "muniment.bridge.front"]


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
