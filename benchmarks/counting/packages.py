"""Packages of the registries whose text is read: pinned, fetched by their ordinary clients."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["PLACE", "Package", "fetch", "members"]

PLACE = Path(__file__).resolve().parents[2] / "build" / "counting"
"""Where downloads are kept."""

_FETCH_SECONDS = 600


@dataclass(frozen=True)
class Package:
    """One file of a registry."""

    registry: Literal["npm", "sdist", "wheel"]
    name: str
    version: str
    licence: str
    """As the package states it, in the words of SPDX."""
    sha256: str


def fetch(package: Package, place: Path = PLACE) -> Path:
    """The package's file, from the last download (kept in `place`) or a new one.

    Raises:
        ValueError: What came is not what is pinned.
        OSError, subprocess.SubprocessError: Nothing came.
    """
    folder = place / f"{package.name.replace('/', '-').lstrip('@')}-{package.version}"
    if not (kept := list(folder.glob("*.*"))):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            _command(package),
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=_FETCH_SECONDS,
        )
        kept = list(folder.glob("*.*"))
    (path,) = kept
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise ValueError(f"{path} has the digest {found}, not {package.sha256}")
    return path


def _command(package: Package) -> list[str]:
    if package.registry == "npm":
        return ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
    # The environment of this project has no pip; the Python that it was made with does.
    python = getattr(sys, "_base_executable", sys.executable)
    kind = "--no-binary" if package.registry == "sdist" else "--only-binary"
    wanted = f"{package.name}=={package.version}"
    return [python, "-m", "pip", "download", "--quiet", "--no-deps", kind, package.name, wanted]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in an archive, in the order of their names."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                yield name, archive.read(name)
        return
    # Unpacked first: a compressed archive that is read out of order is unpacked again and again.
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as packed:
        files = {member.name: member for member in packed if member.isfile()}
        for name in sorted(files):
            content = packed.extractfile(files[name])
            assert content is not None
            yield name.partition("/")[2], content.read()
