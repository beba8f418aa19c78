"""How harnesses are told of the bridge: one registration each, ready to paste."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from muniment.kit.paths import HOME_VARIABLE, Home

__all__ = ["bridge_command", "registrations"]

_COMMAND = "muniment-mcp"


def bridge_command() -> Path | None:
    """Absolute path of the program that a harness spawns, or None where it is not installed."""
    # Beside the interpreter: harnesses are started from desktops that know no venv.
    beside = Path(sys.executable).with_name(_COMMAND)
    found = str(beside) if beside.exists() else shutil.which(_COMMAND)
    return Path(found).absolute() if found else None


def registrations(home: Home, command: Path) -> dict[str, str]:
    """What to run or to paste, by harness. The home is named where a harness might miss it."""
    program, path = str(command), str(home.path)
    claude = ["claude", "mcp", "add", "--scope", "user", "muniment"]
    codex = [
        "[mcp_servers.muniment]",
        f"command = {_quoted(program)}",
        "startup_timeout_sec = 20",
        "required = true",
    ]
    opencode: dict[str, object] = {"type": "local", "command": [program]}
    if not _finds_without_variables(home):
        claude += ["--env", f"{HOME_VARIABLE}={path}"]
        codex.append(f"env = {{ {HOME_VARIABLE} = {_quoted(path)} }}")
        opencode["environment"] = {HOME_VARIABLE: path}
    return {
        "Claude Code": shlex.join([*claude, "--", program]),
        "Codex (config.toml)": "\n".join(codex),
        "OpenCode (opencode.json)": json.dumps({"mcp": {"muniment": opencode}}, ensure_ascii=False),
    }


def _finds_without_variables(home: Home) -> bool:
    # Harnesses drop variables, and this one moves the platform's data folder.
    return home == Home.default() and "XDG_DATA_HOME" not in os.environ


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string.
    return json.dumps(text, ensure_ascii=False)
