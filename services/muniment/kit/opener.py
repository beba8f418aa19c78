"""Opening the stores of a home: under its key, with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.clock import Clock
from muniment.kit.home_key import KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import Randomness
from muniment.kit.settings import Settings
from muniment.kit.store import Schema, Store, StoreOptions
from muniment.kit.store.disk import Disk
from muniment.kit.store.folders import settle
from muniment.kit.store.jobs import WriterLoop
from muniment.kit.store.migration import Migration, open_store
from muniment.kit.store.schemas import peek_schema

__all__ = ["StoreOpener"]


@dataclass(frozen=True)
class StoreOpener:
    """Opens stores of the home, under its key."""

    home: Home
    settings: Settings
    clock: Clock
    randomness: Randomness
    disk: Disk

    def store_in(
        self, folder: Path, schema: Schema, migrations: Mapping[int, Migration], loop: WriterLoop
    ) -> Store:
        """The store in that folder, brought up to the schema; a new one where there is none.

        Raises:
            PreconditionError: It cannot be opened, or not with the home's key.
        """
        settle(folder)
        shelf = KeyShelf(self.home, self.settings.key_store, self.settings.key_folder)
        key = shelf.load_or_make(self.randomness, peek_schema(folder))
        options = StoreOptions(
            map_limit_bytes=self.settings.memory_map_bytes,
            retention_changes=self.settings.feed_retention_changes,
            reply_life_seconds=self.settings.reply_life_seconds,
            disk=self.disk,
            loop=loop,
            clock=self.clock,
        )
        return open_store(folder, schema, migrations, key.protection(self.randomness), options)
