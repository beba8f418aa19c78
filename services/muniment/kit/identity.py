"""Who is who: the project of a folder.

A project is a git repository, by the path of its common directory, so that worktrees and
sub-packages share one memory; without git, the folder. A `.muniment.toml` in the root may name
the project instead, and so lets it survive a move:

    project = "a name of your choice"
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.errors import PreconditionError

__all__ = ["PROJECT_FILE", "ProjectIdentity", "resolve_project"]

PROJECT_FILE = ".muniment.toml"


@dataclass(frozen=True)
class ProjectIdentity:
    """A project and where it is on this host."""

    project_id: str
    root: str
    """Absolute path of the working tree, symlinks resolved; bytes that are not UTF-8 escaped."""
    name: str | None = None
    """The name that the project file gives, where it gives one."""


def resolve_project(folder: Path) -> ProjectIdentity:
    """The project that the folder belongs to.

    Raises:
        PreconditionError: The project file cannot be read.
    """
    folder = folder.resolve()
    for candidate in (folder, *folder.parents):
        name = _project_name(candidate)
        common = _git_common_directory(candidate)
        if name is not None:
            return ProjectIdentity(_project_id("name", name), _printable(candidate), name)
        if common is not None:
            return ProjectIdentity(_project_id("path", common), _printable(candidate))
    return ProjectIdentity(_project_id("path", str(folder)), _printable(folder))


def _project_id(kind: str, value: str) -> str:
    digest = hashlib.sha256(os.fsencode(f"{kind}\0{value}")).hexdigest()
    return f"proj_{digest[:16]}"


def _printable(path: Path) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")


def _project_name(root: Path) -> str | None:
    file = root / PROJECT_FILE
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PreconditionError(
            f"{file} cannot be read: {error}", reason="PROJECT_FILE_UNREADABLE", fix="mend it"
        ) from error
    name = settings.get("project")
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip():
        raise PreconditionError(
            f"{file} must give a text",
            reason="PROJECT_NAME_INVALID",
            field="project",
            fix='write it as project = "name"',
        )
    return name.strip()


def _git_common_directory(root: Path) -> str | None:
    """Where git keeps what all worktrees of this tree share (gitrepository-layout(5))."""
    entry = root / ".git"
    if entry.is_dir():
        return str(entry.resolve())
    try:
        marker = entry.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return None
    if not marker.startswith("gitdir:"):
        return None
    directory = root / marker.removeprefix("gitdir:").strip()
    try:
        shared = (directory / "commondir").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return str(directory.resolve())
    return str((directory / shared.strip()).resolve())
