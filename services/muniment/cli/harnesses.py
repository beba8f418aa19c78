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

_KEY_VARIABLES = ("MUNIMENT_KEY_STORE", "MUNIMENT_KEY_FOLDER")
"""Settings without which services would not find the home's key, or make another."""
_CALLER_VARIABLES = ("MUNIMENT_TENANT", "KINT_TENANT", "MUNIMENT_PROFILE")
"""Without them a harness would see other records, or other tools, than are meant here."""


def bridge_command() -> Path | None:
    """Absolute path of the program that a harness spawns, or None where it is not installed."""
    # Beside the interpreter: harnesses are started from desktops that know no venv.
    beside = Path(sys.executable).with_name(_COMMAND)
    found = str(beside) if beside.exists() else shutil.which(_COMMAND)
    return Path(found).absolute() if found else None


def registrations(home: Home, command: Path) -> dict[str, str]:
    """What to run or to paste, by harness; variables are named where it needs them."""
    program, variables = str(command), _variables(home)
    claude = ["claude", "mcp", "add", "--scope", "user", "muniment"]
    codex = [
        "[mcp_servers.muniment]",
        f"command = {_quoted(program)}",
        "startup_timeout_sec = 20",
        "required = true",
    ]
    opencode: dict[str, object] = {"type": "local", "command": [program]}
    if variables:
        for name, value in variables.items():
            claude += ["--env", f"{name}={value}"]
        pairs = (f"{name} = {_quoted(value)}" for name, value in variables.items())
        codex.append(f"env = {{ {', '.join(pairs)} }}")
        opencode["environment"] = variables
    return {
        "Claude Code": shlex.join([*claude, "--", program]),
        "Codex (config.toml)": "\n".join(codex),
        "OpenCode (opencode.json)": json.dumps({"mcp": {"muniment": opencode}}, ensure_ascii=False),
    }


def _variables(home: Home) -> dict[str, str]:
    """What a harness has to pass on, since it may be who starts the services."""
    variables = {} if _finds_without_variables(home) else {HOME_VARIABLE: str(home.path)}
    return variables | {
        name: value
        for name in _KEY_VARIABLES + _CALLER_VARIABLES
        if (value := os.environ.get(name, ""))
    }


def _finds_without_variables(home: Home) -> bool:
    # Harnesses drop variables, and this one moves the platform's data folder.
    return home == Home.default() and "XDG_DATA_HOME" not in os.environ


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string.
    return json.dumps(text, ensure_ascii=False)
