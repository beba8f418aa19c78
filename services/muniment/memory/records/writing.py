"""What every new record gets: an id and a time."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.clock import Clock, timestamp
from muniment.kit.ids import IdMaker

__all__ = ["Stamp"]


@dataclass(frozen=True)
class Stamp:
    """Gives ids and times."""

    clock: Clock
    ids: IdMaker

    def now(self) -> Timestamp:
        """The time of a change."""
        return timestamp(self.clock)

    def new_id(self) -> str:
        """A UUIDv7 as RFC 9562 writes it; later ones sort behind."""
        _, _, digits = self.ids.new("rec").partition("_")
        return str(UUID(digits))
