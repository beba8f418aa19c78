"""Which project a caller is in, by what its harness tells of it.

As light as the front, which tells by it what resources there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muniment.kit.errors import PreconditionError
from muniment.kit.identity import ProjectIdentity, resolve_project
from muniment.kit.paths import user_path

__all__ = ["project_of", "turn_metadata"]

_SHOWN_CHARACTERS = 300

_ROOT_VARIABLES = ("MUNIMENT_PROJECT_ROOT", "SAKUR4_PROJECT_ROOT")


def project_of(
    environment: Mapping[str, str], cwd: str, meta: Mapping[str, Any]
) -> ProjectIdentity:
    """The caller's project.

    Args:
        environment: Of the front that the harness spawned.
        cwd: The folder that it was spawned in.
        meta: `_meta` of the request.

    Raises:
        PreconditionError: The folder that is named does not exist, or its project file cannot be
            read.
    """
    return resolve_project(_folder(environment, Path(cwd), meta))


def turn_metadata(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What Codex tells of a turn: an object, or its JSON text."""
    value = meta.get("x-codex-turn-metadata")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _folder(environment: Mapping[str, str], cwd: Path, meta: Mapping[str, Any]) -> Path:
    # A relative path is meant from where the harness spawned the front.
    for name in _ROOT_VARIABLES:
        if environment.get(name):
            return _existing(name, cwd / user_path(environment[name]))
    workspaces = turn_metadata(meta).get("workspaces")
    for folder in workspaces if isinstance(workspaces, list | dict) else ():
        if isinstance(folder, str) and folder.startswith("/"):
            return Path(folder)
    if environment.get("CLAUDE_PROJECT_DIR"):
        return _existing("CLAUDE_PROJECT_DIR", cwd / environment["CLAUDE_PROJECT_DIR"])
    return _existing("the folder of the harness", cwd)


def _existing(variable: str, folder: Path) -> Path:
    if not _is_folder(folder):
        raise PreconditionError(
            f"{variable} names {folder!s:.{_SHOWN_CHARACTERS}}, which is no folder",
            reason="PROJECT_ROOT_MISSING",
            fix="correct it where the harness starts this server",
        )
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # Its name is too long, or it cannot be looked at.
