"""The stores of a home: where each is, and which versions of its tables this program reads.

What the command line must know of them while no service runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.errors import UnavailableError
from muniment.kit.files import hold_file, private_folder
from muniment.kit.paths import Home

__all__ = ["MEMORY_STORE", "STORES", "HomeStore", "hold_stores"]

_HELD = "held"


@dataclass(frozen=True)
class HomeStore:
    """One store of every home."""

    service: str
    """The service that owns it."""
    version: int
    """The version of its tables."""
    oldest_version: int
    """The oldest that the service brings up to it."""

    def folder(self, home: Home) -> Path:
        """The store's folder."""
        return home.data(self.service) / "store"

    def index(self, home: Home) -> Path:
        """The file of the store's lexical index."""
        return home.data(self.service) / "lexical.sqlite3"

    def reads(self, version: int) -> bool:
        """Whether this program can use tables of that version."""
        return self.oldest_version <= version <= self.version


MEMORY_STORE = HomeStore("memory", version=2, oldest_version=1)

STORES: Sequence[HomeStore] = (MEMORY_STORE,)


@contextmanager
def hold_stores(home: Home, stores: Sequence[HomeStore]) -> Iterator[None]:
    """Have these stores to oneself: their services cannot start meanwhile.

    Raises:
        UnavailableError: Somebody uses one of them.
    """
    with ExitStack() as held:
        for store in stores:
            folder = private_folder(home.data(store.service))
            try:
                held.enter_context(hold_file(folder / _HELD))
            except BlockingIOError as error:
                raise UnavailableError(
                    f"another process uses {folder}",
                    reason="STORE_IN_USE",
                    fix="stop it with `muniment down`, then call again",
                ) from error
        yield
