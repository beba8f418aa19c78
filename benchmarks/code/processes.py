"""What processes take: seconds of the processor, seconds of the clock, memory at their peak."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Meter", "Usage", "run"]

_SAMPLE_SECONDS = 0.02
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Usage:
    """What was taken."""

    cpu: float
    wall: float
    peak_mib: float
    """Resident memory of all its processes together, shared pages counted in each."""
    output: str = ""
    """What it printed."""


class Meter:
    """Watches a process and its descendants, from when it is made until it is read."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = _resident(pid)
        self._over = threading.Event()
        self._began = time.perf_counter()
        self._cpu = _cpu(pid)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def read(self) -> Usage:
        """What was taken so far; it watches no longer."""
        wall = time.perf_counter() - self._began
        cpu = _cpu(self._pid) - self._cpu
        self._over.set()
        self._thread.join()
        return Usage(cpu, wall, self._peak)

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_SECONDS):
            self._peak = max(self._peak, _resident(self._pid))


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Usage:
    """Run a command to its end.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        meter = Meter(process.pid)
        output = process.stdout.read().decode(errors="replace")
        # Its own and those of its descendants that it waited for.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = meter.read().peak_mib
    wall = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    # `ru_maxrss` would be this process's own, as it was when the other was made of it.
    return Usage(used.ru_utime + used.ru_stime, wall, peak, output)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))
    except OSError:
        return


def _cpu(pid: int) -> float:
    """Of the process and its descendants: those that live, and those that were waited for."""
    return sum(sum(map(int, fields[11:15])) for fields in _stats(pid)) / _TICK


def _resident(pid: int) -> float:
    return sum(int(fields[21]) for fields in _stats(pid)) * _PAGE_MIB


def _stats(pid: int) -> Iterator[list[str]]:
    for one in _tree(pid):
        try:
            yield Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
