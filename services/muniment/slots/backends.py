"""The servers of a home, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from muniment.kit.clock import Clock
from muniment.kit.errors import NotFoundError
from muniment.kit.paths import user_path
from muniment.slots.addresses import ServerAddress
from muniment.slots.backend import Backend
from muniment.slots.failures import NoServer, printable
from muniment.slots.places import Places

__all__ = ["Backends"]


class Backends:
    """All servers that the settings name; the first is the usual one."""

    def __init__(self, addresses: Sequence[ServerAddress], folder: Path, clock: Clock) -> None:
        """`folder` is that of our save files."""
        self._backends = {one.name: Backend(one, clock) for one in addresses}
        self.folder = folder

    def __iter__(self) -> Iterator[Backend]:
        """The usual one first."""
        return iter(self._backends.values())

    async def close(self) -> None:
        """Close all connections."""
        for one in self:
            await one.close()

    def is_usual(self, backend: Backend) -> bool:
        """Whether calls mean it that name none."""
        return backend is next(iter(self), None)

    def find(self, name: str) -> Backend:
        """The server of that name; the usual one for the empty name.

        Raises:
            NotFoundError: None is called so.
            PreconditionError: There is none at all.
        """
        if not self._backends:
            raise NoServer
        if not name:
            return next(iter(self))
        if name not in self._backends:
            raise NotFoundError(
                f"no inference server is called {printable(name)}",
                reason="SERVER_UNKNOWN",
                field="server",
                fix=f"use one of {', '.join(self._backends)}",
            )
        return self._backends[name]

    def places(self, backend: Backend) -> Places:
        """The folders of its save files."""
        named = backend.address.save_folder
        return Places(self.folder, user_path(named) if named else None)

    def places_of(self, name: str) -> Places:
        """The same by name; our folder alone for a server that is configured no more."""
        backend = self._backends.get(name)
        return Places(self.folder, None) if backend is None else self.places(backend)
