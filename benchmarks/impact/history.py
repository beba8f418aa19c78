"""Histories of code: successive releases of a package, and the commits of a repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.counting.packages import Package, fetch, members

__all__ = ["Files", "commits", "releases"]

Files = Mapping[str, bytes]
"""Path -> content, of one moment."""


def releases(packages: Sequence[Package], place: Path) -> Iterator[tuple[str, Files]]:
    """What each release's sdist has of Python, the oldest first."""
    for package in packages:
        found = members(fetch(package, place))
        yield package.version, {name: text for name, text in found if name.endswith(".py")}


def commits(repository: Path) -> Iterator[tuple[str, Files]]:
    """What each commit on the first line of descent has of Python, the oldest first."""
    listed = _git(repository, "rev-list", "--first-parent", "--reverse", "HEAD").decode()
    for commit in listed.split():
        packed = _git(repository, "archive", "--format=tar", commit)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            yield commit[:12], dict(_python_of(archive))


def _python_of(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isfile() and member.name.endswith(".py"):
            content = archive.extractfile(member)
            assert content is not None
            yield member.name, content.read()


def _git(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", *arguments], cwd=repository, capture_output=True, check=True, timeout=60
    )
    return done.stdout
