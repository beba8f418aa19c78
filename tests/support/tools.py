"""Programs that tests need besides our own: Node with its packages, and old MCP clients."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["ROOT", "node", "node_24", "one_at_a_time", "python_with"]

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_NODE = "TESTS_WITHOUT_NODE"
"""Set to 1, tests that need Node are skipped; otherwise they fail where it is missing."""

NEWEST_NODE = 24

_INSTALL_SECONDS = 300


def node() -> str:
    """The path of node; the packages of package-lock.json are installed."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        missing = f"node and npm are needed; install them, or set {WITHOUT_NODE}=1 to go without"
        if os.environ.get(WITHOUT_NODE) == "1":
            pytest.skip(missing)
        pytest.fail(missing)
    lock, installed = ROOT / "package-lock.json", ROOT / "node_modules" / "locked.json"
    with one_at_a_time("node_modules"):
        # As scripts/lint-protos does it.
        if not installed.exists() or installed.read_bytes() != lock.read_bytes():
            _run([npm, "ci", "--no-progress", "--loglevel=error"])
            shutil.copy(lock, installed)
    return found


def node_24() -> str:
    """The path of the node that package-lock.json pins, for what needs a newer one than is here.

    Where none is pinned for this platform, the one that is here has to be new enough.
    """
    found = node()
    pinned = ROOT / "node_modules" / ".bin" / "node"
    if pinned.exists():
        return str(pinned)
    told = subprocess.run([found, "--version"], capture_output=True, check=True, text=True)
    if int(told.stdout.removeprefix("v").partition(".")[0]) < NEWEST_NODE:
        pytest.fail(f"node {NEWEST_NODE} is needed, and {found} is {told.stdout.strip()}")
    return found


def python_with(name: str, requirement: str) -> str:
    """The path of a Python that has this package, in an environment that is kept for next time."""
    environment = ROOT / "build" / "environments" / name
    python = environment / "bin" / "python"
    stamp = environment / "has"
    with one_at_a_time(name):
        if not stamp.exists() or stamp.read_text() != requirement:
            if uv := shutil.which("uv") or _own_uv():
                _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment])
                _run([uv, "pip", "install", "--quiet", "--python", python, requirement])
            else:
                _run([sys.executable, "-m", "venv", "--clear", environment])
                _run([python, "-m", "pip", "install", "--quiet", requirement])
            stamp.write_text(requirement)
    return str(python)


def _own_uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else None


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let no two runs of the tests make the same thing at once."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=False, text=True, timeout=_INSTALL_SECONDS
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}"
