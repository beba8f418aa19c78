"""The files that a probe has the server write: how they are called, and that none stays.

A home removes its own only; what it does not find in its folders it leaves alone.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

import structlog

from muniment.kit.randomness import Randomness
from muniment.slots.places import Places

__all__ = ["ProbeFiles"]

_PREFIX, _SUFFIX = "muniment-probe-", ".slot"
_RANDOM_BYTES = 8

_log = structlog.get_logger()


class ProbeFiles:
    """Those of one home on one server. When the block is entered and left, there are none."""

    def __init__(self, places: Places, home: str, randomness: Randomness) -> None:
        """`home` is what tells the home's files from those of others."""
        self._places = places
        self._stem = f"{_PREFIX}{home}"
        self._randomness = randomness
        self._is_in_reach = False

    async def __aenter__(self) -> None:
        await asyncio.to_thread(self.sweep)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.sweep)

    @property
    def first_name(self) -> str:
        """The name of the first file, which is the same each time."""
        return f"{self._stem}{_SUFFIX}"

    def look(self) -> None:
        """See whether the first file, which the server has written, can be seen from here."""
        self._is_in_reach = self._places.written(self.first_name) is not None

    def next_name(self) -> str:
        """A name for the next file: nobody else's, unless it could not be removed afterwards."""
        if not self._is_in_reach:
            return self.first_name  # It is written over.
        return f"{self._stem}-{self._randomness.token(_RANDOM_BYTES).hex()}{_SUFFIX}"

    def sweep(self) -> None:
        """Remove all of them."""
        folders = {self._places.folder, self._places.server_folder or self._places.folder}
        for folder in folders:
            try:
                for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
                    if path.name == self.first_name or path.name.startswith(f"{self._stem}-"):
                        path.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("a file of a probe stays", folder=str(folder), why=str(error))
