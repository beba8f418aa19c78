"""Calls that take long and say in their answer's stream how far they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol, TypeVar

from muniment.kit.progress import Report
from muniment.v1 import maintenance_pb2

__all__ = ["reporting"]


class _Part(Protocol):
    """A message of such a stream."""

    @property
    def progress(self) -> maintenance_pb2.Progress: ...

    def HasField(self, field_name: Literal["progress"], /) -> bool: ...


P = TypeVar("P", bound=_Part)


async def reporting(parts: AsyncIterator[P], report: Report) -> AsyncIterator[P]:
    """The parts of the stream, but those that say how far it is: these are reported."""
    async for part in parts:
        if part.HasField("progress"):
            report(part.progress.step, part.progress.done, part.progress.total)
        else:
            yield part
