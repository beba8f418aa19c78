"""Which snapshots have to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.kit.settings import Settings
from muniment.v1 import slots_pb2

__all__ = ["Retention"]

_DAY_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True)
class Retention:
    """How much is kept."""

    keep: int
    """Most of one server, slot, project and session."""
    life_ns: int
    most_bytes: int
    """Of all together; 0 for no limit."""

    @classmethod
    def of(cls, settings: Settings) -> Retention:
        """As the settings have it."""
        life_ns = int(settings.snapshots_days * _DAY_NS)
        return cls(settings.snapshots_keep, life_ns, settings.snapshots_bytes)

    def leaving(self, newest_first: Sequence[slots_pb2.Snapshot], now_ns: int) -> list[str]:
        """The ids of those that have to go. The newest of all stays, whatever its size."""
        seen: Counter[tuple[str, int, str, str]] = Counter()
        total, leaving = 0, []
        for place, one in enumerate(newest_first):
            group = (one.server, one.slot_id, one.project_id, one.session_id)
            size = one.size_bytes
            goes = place > 0 and (
                seen[group] >= self.keep
                or one.created_at.ToNanoseconds() + self.life_ns < now_ns
                or (self.most_bytes > 0 and total + size > self.most_bytes)
            )
            if goes:
                leaving.append(one.snapshot_id)
                continue
            seen[group] += 1
            total += size
        return leaving
