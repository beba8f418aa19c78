"""Gives a home another key: its stores are rewritten under it, one after the other.

For a home whose services do not run. The next key is kept beside the present one before the first
store is touched, and takes its place after the last; whoever was interrupted calls `finish`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muniment.kit import faults
from muniment.kit.errors import MunimentError, PreconditionError
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.progress import Report
from muniment.kit.randomness import Randomness
from muniment.kit.store.folders import settle
from muniment.kit.store.rewrite import rewrite_store
from muniment.kit.store.schemas import peek_schema

__all__ = ["change_key", "finish_change", "stores_with_data"]


def stores_with_data(folders: Sequence[Path]) -> list[Path]:
    """Those of the stores that there are.

    Raises:
        PreconditionError: One was written before stores had keys.
    """
    found = []
    for folder in folders:
        settle(folder)
        stored = peek_schema(folder)
        if stored is None:
            continue
        if not stored.key_id:
            raise PreconditionError(
                f"the store in {folder} is of an earlier version of muniment",
                reason="STORE_NOT_MIGRATED",
                fix="run `muniment up`, which brings it up to date; then call again",
            )
        found.append(folder)
    return found


def change_key(
    shelf: KeyShelf, key: HomeKey, folders: Sequence[Path], randomness: Randomness, report: Report
) -> None:
    """Bring the stores in the folders under the new key, and make it the home's.

    Raises:
        PreconditionError: The present key of a store is not there.
        MunimentError: A store cannot be rewritten. It is as it was; those before it are under the
            new key, and every store can be used.
    """
    for folder in folders:
        stored = peek_schema(folder)
        if stored is not None and not shelf.load_for(stored).opens(stored):
            raise PreconditionError(
                f"the store in {folder} was written with key {stored.key_id}, "
                f"which is not in {shelf.where}",
                reason="STORE_KEY_OTHER",
                fix="bring back that key; `muniment key show-id` tells which one is here",
            )
    shelf.prepare(key, randomness)
    faults.reach("key.prepared")
    finish_change(shelf, key, folders, randomness, report)


def finish_change(
    shelf: KeyShelf, key: HomeKey, folders: Sequence[Path], randomness: Randomness, report: Report
) -> None:
    """Do what is left of a change of the key, which `shelf.load_next` returns.

    Raises:
        MunimentError: As `change_key`.
    """
    for folder in folders:
        stored = peek_schema(folder)
        if stored is None or key.opens(stored):
            continue
        old = shelf.load_for(stored).protection(randomness)
        try:
            rewrite_store(folder, old, key.protection(randomness), report)
        except MunimentError:
            if not any(_is_under(key, one) for one in folders):
                shelf.abandon()
            raise
    faults.reach("key.rewritten")
    shelf.promote(randomness)
    faults.reach("key.promoted")


def _is_under(key: HomeKey, folder: Path) -> bool:
    stored = peek_schema(folder)
    return stored is not None and key.opens(stored)
