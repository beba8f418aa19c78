"""Which files a working tree has, as git sees them: `git ls-files`, and nothing that runs code.

A repository is somebody else's. Its configuration may name programs (fsmonitor, hooks), so these
are switched off, and our own environment does not reach git.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from muniment.code.paths import under

__all__ = ["GitError", "git_files", "git_ignored_folders", "git_watched_files"]

_PATIENCE_SECONDS = 120.0

_HARMLESS = (
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
)

_SETTINGS = {
    # Nothing is written, nobody is asked, nothing is fetched.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


class GitError(Exception):
    """Git cannot say; the message is for people."""


def git_files(folder: bytes, *, ceiling: bytes | None = None) -> list[bytes]:
    """Paths of tracked and of new files, relative to the folder; what is ignored is not among them.

    Of a tracked file that is gone the path is there too. A submodule, or another folder that is a
    repository, is one path; the latter ends with a slash. With a ceiling the repository has to
    begin below it.

    Raises:
        GitError: It is not installed, or does not take the folder for a working tree.
    """
    arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return sorted(set(_paths(folder, arguments, ceiling)))


def git_ignored_folders(folder: bytes) -> frozenset[bytes]:
    """Folders that are ignored, the outermost of each, relative to the folder.

    Raises:
        GitError: As `git_files`.
    """
    arguments = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    return frozenset(one[:-1] for one in _paths(folder, arguments, None) if one.endswith(b"/"))


def git_watched_files(folder: bytes) -> list[bytes]:
    """Files outside the tree that decide which files it has: the index, and what it excludes.

    Raises:
        GitError: As `git_files`.
    """
    said = _git(folder, ["rev-parse", "--git-path", "index", "--git-path", "info/exclude"], None)
    return [one if one.startswith(b"/") else under(folder, one) for one in said.splitlines()]


def _paths(folder: bytes, arguments: Sequence[str], ceiling: bytes | None) -> list[bytes]:
    return [one for one in _git(folder, arguments, ceiling).split(b"\0") if one]


def _git(folder: bytes, arguments: Sequence[str], ceiling: bytes | None) -> bytes:
    program = shutil.which("git")
    if program is None:
        raise GitError("git is not installed")
    environment = {
        name: value for name, value in os.environb.items() if not name.startswith(b"GIT_")
    } | {os.fsencode(name): os.fsencode(value) for name, value in _SETTINGS.items()}
    if ceiling is not None:
        environment[b"GIT_CEILING_DIRECTORIES"] = ceiling
    try:
        done = subprocess.run(
            [program, *_HARMLESS, "-C", folder, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git cannot be run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(said[0] if said else f"git ended with {done.returncode}")
    return done.stdout
