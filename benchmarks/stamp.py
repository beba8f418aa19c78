"""What a number must be read with: commit, machine, disk, and what else the machine did."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["load", "stamp"]

_ROOT = Path(__file__).resolve().parent.parent
_SYNCS = 40


def stamp(folder: Path) -> dict[str, Any]:
    """The machine's facts; `folder` is on the disk that is measured."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "loop_us": round(_loop_us(), 1),
        "sync_ms": round(_sync_ms(folder), 3),
        "load": load(),
    }


def load() -> str:
    """Load averages over 1 and 5 minutes."""
    one, five, _ = os.getloadavg()
    return f"{one:.1f} {five:.1f}"


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = "+changes" if git("status", "--porcelain") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _loop_us() -> float:
    """What a small fixed piece of Python takes at best: compares machines, and hours of one."""
    taken = []
    for _ in range(200):
        began = time.perf_counter()
        sum(range(1000))
        taken.append(time.perf_counter() - began)
    return min(taken) * 1e6


def _sync_ms(folder: Path) -> float:
    """Median of writing a page and syncing it."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            began = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e3
