"""What a verification found, and how it says how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from muniment.kit.progress import Report
from muniment.v1 import maintenance_pb2

__all__ = ["FINDINGS_LIMIT", "Findings", "Kind", "counted"]

FINDINGS_LIMIT = 200
"""Findings of one kind in one table that are listed; more are only counted."""

_TICK_ROWS = 256

_RESTORE = (
    "bring back a backup with `muniment restore`; without one, take what can be believed to a new"
    " home with `muniment export` and `muniment import`"
)

T = TypeVar("T")
Kind: TypeAlias = "maintenance_pb2.FindingKind.ValueType"


class Findings:
    """What is not as it should be: all of it counted, the first of each kind and table listed."""

    def __init__(self, mend: Callable[[Kind, str, str], str | None]) -> None:
        """`mend` says what to do about a finding, where it is more than to bring back a backup."""
        self._mend = mend
        self._known: set[tuple[Kind, str, str]] = set()
        self._counts: Counter[tuple[Kind, str]] = Counter()
        self.listed: list[maintenance_pb2.Finding] = []

    @property
    def total(self) -> int:
        """All findings, listed or not."""
        return self._counts.total()

    def add(self, kind: Kind, table: str, key: str, found: str) -> None:
        """Take in a finding. Of one row each kind is told once; without a key, each is."""
        if key and (kind, table, key) in self._known:
            return
        self._counts[kind, table] += 1
        if self._counts[kind, table] > FINDINGS_LIMIT:
            return
        self._known.add((kind, table, key))
        mend = self._mend(kind, table, key) or _RESTORE
        self.listed.append(
            maintenance_pb2.Finding(kind=kind, table=table, key=key, found=found, mend=mend)
        )


def counted(items: Iterable[T], step: str, total: int, report: Report) -> Iterator[T]:
    """The items, saying now and then how many there were."""
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if done % _TICK_ROWS == 0:
            report(step, done, total)
    report(step, done, total)
