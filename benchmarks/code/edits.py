"""How soon an edit is seen: a function is added to a file, and asked for until it is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.code.served import Served
from muniment.v1 import code_pb2

__all__ = ["Seen", "all_at_once", "one_by_one"]

_LONGEST_SECONDS = 60.0


@dataclass(frozen=True)
class Seen:
    """How long it took from before the file was written."""

    seconds: Sequence[float]
    late: int
    """Answers that had not seen it yet."""
    silent: int
    """Of these, how many called themselves current."""


async def one_by_one(served: Served, files: Sequence[Path], mark: str) -> Seen:
    """One edit after the other, each waited for."""
    seconds, late, silent = [], 0, 0
    for number, path in enumerate(files):
        began = time.perf_counter()
        _edit(path, f"{mark}_{number}")
        more_late, more_silent = await _until_found(served, f"{mark}_{number}")
        seconds.append(time.perf_counter() - began)
        late, silent = late + more_late, silent + more_silent
    return Seen(seconds, late, silent)


async def all_at_once(served: Served, files: Sequence[Path], mark: str) -> Seen:
    """All files are written, then all new functions asked for at once, until all are there."""
    began = time.perf_counter()
    for number, path in enumerate(files):
        _edit(path, f"{mark}_{number}")
    found = await asyncio.gather(
        *(_until_found(served, f"{mark}_{number}") for number in range(len(files)))
    )
    taken = time.perf_counter() - began
    return Seen([taken], sum(late for late, _ in found), sum(silent for _, silent in found))


def _edit(path: Path, name: str) -> None:
    with path.open("a") as file:
        file.write(f"\n\ndef {name}():\n    return 1\n")


async def _until_found(served: Served, name: str) -> tuple[int, int]:
    late = silent = 0
    began = time.perf_counter()
    while not (answer := await served.find(name)).definitions:
        late += 1
        silent += answer.state.freshness == code_pb2.FRESHNESS_CURRENT
        assert time.perf_counter() - began < _LONGEST_SECONDS, f"{name} is never seen"
    return late, silent
