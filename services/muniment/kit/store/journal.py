"""Which rows are written while a copy of the store is made."""

from __future__ import annotations

__all__ = ["Journal", "Place"]

Place = tuple[str, bytes]
"""A row's table and address."""


class Journal:
    """Notes rows between its beginning and its end. Used on the store's writer alone."""

    def __init__(self) -> None:
        self._places: set[Place] | None = None

    def begin(self) -> None:
        """Note what is written from now on."""
        self._places = set()

    def note(self, table: str, address: bytes) -> None:
        """Note a row that is written or taken away."""
        if self._places is not None:
            self._places.add((table, address))

    def end(self) -> set[Place]:
        """Note no more; the rows since it began."""
        places, self._places = self._places, None
        return places or set()
