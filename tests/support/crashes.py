"""Dying at a named fault point inside the test's own process, and knowing which there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from muniment.kit import faults

__all__ = ["Crash", "dying_at", "fault_points"]

_ROOT = Path(__file__).resolve().parents[2]
_REACH = re.compile(r'\bfaults\.reach\(\s*"([^"]+)"')
_CALL = re.compile(r"\bfaults\.reach\(")


class Crash(BaseException):
    """The process is dead from here on. Not an Exception: nobody may handle it."""

    def __init__(self, point: str) -> None:
        super().__init__(point)
        self.point = point


def fault_points(under: str = "") -> frozenset[str]:
    """The points that the source names, in files under that path of the repository.

    Raises:
        AssertionError: One has a name that is no literal, or there are none.
    """
    files = [
        path
        for root in ("services", "mcp_bridge")
        for path in (_ROOT / root).rglob("*.py")
        if path.relative_to(_ROOT).as_posix().startswith(under)
    ]
    texts = [path.read_text() for path in files]
    points = [point for text in texts for point in _REACH.findall(text)]
    assert len(points) == sum(len(_CALL.findall(text)) for text in texts), "no literal"
    assert points, f"no fault point under {under}"
    return frozenset(points)


@contextmanager
def dying_at(point: str, visit: int = 1) -> Iterator[None]:
    """Raise `Crash` on that visit of the point; a block that never gets there just ends."""
    left = visit

    def reach(reached: str) -> None:
        nonlocal left
        if reached == point:
            left -= 1
            if left == 0:
                die(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "reach", reach)
        yield


def die(point: str) -> NoReturn:
    """End here."""
    raise Crash(point)
