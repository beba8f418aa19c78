"""The harnesses: how each is told of the bridge and of the model, and how it is run once.

They are told of the bridge with the very words that `muniment doctor` prints.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hosts.dialects import ByCall
from tests.hosts.scripted_model import MODEL, Step
from tests.support.tools import ROOT, one_at_a_time

__all__ = ["FOLDER", "HARNESSES", "Harness", "Place", "Ran", "install"]

FOLDER = ROOT / "build" / "hosts"
_OWN = Path(__file__).parent
_INSTALL_SECONDS = 900
_RUN_SECONDS = 240


@dataclass(frozen=True)
class Place:
    """Where a harness runs once."""

    home: Path
    """Its user's home, with nothing in it."""
    project: Path
    model_url: str
    registration: str
    """What `muniment doctor` prints for it."""

    @property
    def environment(self) -> dict[str, str]:
        """What every harness gets. Whatever wants to leave loopback is led to the model."""
        return {
            "PATH": f"{FOLDER / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.home / "tmp"),
            "TERM": "dumb",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), self.model_url),
            **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), self.model_url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        }


@dataclass(frozen=True)
class Ran:
    """What one run of a harness did."""

    code: int
    out: str
    err: str
    session: str | None
    """What the harness itself calls the session."""


class Harness(ABC):
    """One harness."""

    name: str
    registration: str
    """The name under which `muniment doctor` has its words."""
    prelude: Sequence[Step] = ()
    """What its model has to call before it can call ours."""

    @abstractmethod
    def spelled(self, tool: str) -> ByCall:
        """A tool of ours as its model sees it."""

    @abstractmethod
    def run(self, place: Place, prompt: str) -> Ran:
        """Set it up in the place and run it once, to its end."""


def install() -> None:
    """Have npm install what package-lock.json says, where that is not done."""
    npm = shutil.which("npm")
    assert npm is not None, "npm is needed to install the harnesses"
    lock, installed = _OWN / "package-lock.json", FOLDER / "installed.json"
    with one_at_a_time("hosts"):
        if installed.exists() and installed.read_bytes() == lock.read_bytes():
            return
        FOLDER.mkdir(exist_ok=True)
        for path in (_OWN / "package.json", lock, ROOT / ".npmrc"):
            shutil.copy(path, FOLDER)
        # Not `ci`, which refuses the lock: it has OpenCode's own packages for x86-64 Linux only,
        # and takes those of other platforms by the exact versions that OpenCode names.
        done = subprocess.run(
            [npm, "install", "--no-progress", "--loglevel=error"],
            cwd=FOLDER,
            capture_output=True,
            check=False,
            text=True,
            timeout=_INSTALL_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        shutil.copy(lock, installed)


def _run(place: Place, command: Sequence[str], more: Mapping[str, str]) -> tuple[int, str, str]:
    with subprocess.Popen(
        [str(FOLDER / "node_modules" / ".bin" / command[0]), *command[1:]],
        cwd=place.project,
        env={**place.environment, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=_RUN_SECONDS)
        except subprocess.TimeoutExpired:
            # What it started holds its pipes open.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


def _objects(lines: str) -> list[dict[str, Any]]:
    """The JSON objects of a harness's output, one a line."""
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]


class ClaudeCode(Harness):
    """Its tools of servers are deferred: the model finds them by a search of the harness."""

    name = "claude-code"
    registration = "Claude Code"
    prelude = (
        Step(
            ByCall("ToolSearch"),
            {"query": "memory episode commit pin recall status", "max_results": 10},
        ),
    )
    _quiet: Mapping[str, str] = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }

    def spelled(self, tool: str) -> ByCall:
        """A tool of ours as its model sees it."""
        return ByCall(f"mcp__muniment__{tool}")

    def run(self, place: Place, prompt: str) -> Ran:
        """Set it up in the place and run it once, to its end."""
        environment = {
            **self._quiet,
            "ANTHROPIC_BASE_URL": place.model_url,
            "ANTHROPIC_API_KEY": "scripted",
        }
        code, out, err = _run(place, shlex.split(place.registration), environment)
        assert code == 0, (out, err)
        code, out, err = _run(
            place,
            [
                *("claude", "-p", prompt, "--model", MODEL),
                *("--allowedTools", "mcp__muniment__*", "--output-format", "json"),
            ],
            environment,
        )
        told = _objects(out)
        return Ran(code, out, err, told[-1].get("session_id") if told else None)


class Codex(Harness):
    """It gives the model a namespace of tools for each server."""

    name = "codex"
    registration = "Codex (config.toml)"

    def spelled(self, tool: str) -> ByCall:
        """A tool of ours as its model sees it."""
        return ByCall(tool, "mcp__muniment")

    def run(self, place: Place, prompt: str) -> Ran:
        """Set it up in the place and run it once, to its end."""
        folder = place.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            f"""\
model = "{MODEL}"
model_provider = "scripted"
check_for_update_on_startup = false

[features]
apps = false
plugins = false
remote_plugin = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{place.model_url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

{place.registration}
default_tools_approval_mode = "approve"
"""
        )
        command = ("codex", "exec", "--skip-git-repo-check", "--json", prompt)
        code, out, err = _run(place, command, {"SCRIPTED_KEY": "scripted"})
        started = [one["thread_id"] for one in _objects(out) if one["type"] == "thread.started"]
        return Ran(code, out, err, next(iter(started), None))


class OpenCode(Harness):
    """It says nothing of its session to a server."""

    name = "opencode"
    registration = "OpenCode (opencode.json)"
    _quiet: Mapping[str, str] = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        # It fetches its plugin package whatever it is told, so its npm must not go out.
        "npm_config_offline": "true",
    }

    def spelled(self, tool: str) -> ByCall:
        """A tool of ours as its model sees it."""
        return ByCall(f"muniment_{tool}")

    def run(self, place: Place, prompt: str) -> Ran:
        """Set it up in the place and run it once, to its end."""
        folder = place.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{place.model_url}/v1", "apiKey": "scripted"},
            "models": {MODEL: {"name": MODEL, "tool_call": True}},
        }
        settings = {
            "provider": {"scripted": provider},
            "model": f"scripted/{MODEL}",
            "small_model": f"scripted/{MODEL}",
            "share": "disabled",
            "snapshot": False,
            "permission": {"*": "deny", "muniment_*": "allow"},
            **json.loads(place.registration),
        }
        (folder / "opencode.json").write_text(json.dumps(settings))
        code, out, err = _run(
            place, ("opencode", "run", "--format", "json", "--title", "memory", prompt), self._quiet
        )
        sessions = [one["sessionID"] for one in _objects(out) if "sessionID" in one]
        return Ran(code, out, err, next(iter(sessions), None))


HARNESSES: Sequence[Harness] = (ClaudeCode(), Codex(), OpenCode())
