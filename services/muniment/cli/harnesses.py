"""How harnesses are told of the bridge: one registration each, ready to paste."""

from __future__ import annotations

import json
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
    """What to run or to paste, by harness. The home is named, since harnesses drop variables."""
    variable, program = {HOME_VARIABLE: str(home.path)}, str(command)
    opencode = {
        "mcp": {"muniment": {"type": "local", "command": [program], "environment": variable}}
    }
    return {
        "Claude Code": "claude mcp add --scope user muniment "
        f"--env {shlex.quote(f'{HOME_VARIABLE}={home.path}')} -- {shlex.quote(program)}",
        "Codex (config.toml)": "[mcp_servers.muniment]\n"
        f"command = {_quoted(program)}\n"
        f"env = {{ {HOME_VARIABLE} = {_quoted(str(home.path))} }}",
        "OpenCode (opencode.json)": json.dumps(opencode, ensure_ascii=False),
    }


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string.
    return json.dumps(text, ensure_ascii=False)
