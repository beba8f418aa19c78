"""The home's key: sealing its stores, giving it another one, and saying which it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from muniment.cli.groups import command_group
from muniment.cli.output import Json, print_json, print_text, progress
from muniment.kit.errors import NotFoundError, PreconditionError
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.kit.home_key import HomeKey, KeyShelf

__all__ = ["app", "open_shelf"]

app = command_group("The key of the home's stores.")


@app.command()
def create(context: typer.Context, json: Json = False) -> None:
    """Make a key and seal the stores of this home with it.

    From then on nothing that was said is on the disk in the clear. The services are stopped
    meanwhile, and their logs deleted. In a home without data this just makes the key.
    """
    home: Home = context.obj
    shelf = open_shelf(home)
    present = shelf.load()
    if present is not None and present.sealed and shelf.load_next() is None:
        raise PreconditionError(
            f"this home is sealed already, with the key {present.key_id}",
            reason="SEALED_ALREADY",
            fix="`muniment key rotate` gives it a new key",
        )
    _give_key(home, shelf, sealed=True, what="sealing the stores", json=json)


@app.command()
def rotate(context: typer.Context, json: Json = False) -> None:
    """Give this home a new key; sealed stores stay sealed, plain ones plain.

    The services are stopped meanwhile. Backups that were made before need the key before, which
    is kept beside the new one.
    """
    home: Home = context.obj
    shelf = open_shelf(home)
    present = _present(home, shelf)
    _give_key(home, shelf, sealed=present.sealed, what="changing the key", json=json)


@app.command()
def show_id(context: typer.Context, json: Json = False) -> None:
    """Print the key's id, which is no secret, and where the key is."""
    home: Home = context.obj
    shelf = open_shelf(home)
    key = _present(home, shelf)
    unfinished = shelf.load_next() is not None
    if json:
        print_json(_told(shelf, key) | {"unfinished_change": unfinished})
        return
    print_text(f"{key.key_id} ({'sealed' if key.sealed else 'plain'} stores)")
    print_text(f"kept in {shelf.where}")
    if unfinished:
        print_text("a change of the key was interrupted; `muniment key rotate` finishes it")


def _give_key(home: Home, shelf: KeyShelf, *, sealed: bool, what: str, json: bool) -> None:
    from muniment.cli.standstill import standstill
    from muniment.kit.home_key import HomeKey
    from muniment.kit.key_change import change_key, finish_change, stores_with_data
    from muniment.kit.randomness import SystemRandomness
    from muniment.kit.stores import delete_indexes, store_folders

    randomness = SystemRandomness()
    with progress(what) as report, standstill(home):
        folders = stores_with_data(store_folders(home))
        key = shelf.load_next()
        finished = key is not None
        if key is not None:
            finish_change(shelf, key, folders, randomness, report)
        # What was interrupted may have been a plain change, and now a sealed home is wanted.
        if key is None or (sealed and not key.sealed):
            key = HomeKey.make(randomness, sealed=sealed)
            change_key(shelf, key, folders, randomness, report)
        if key.sealed:
            delete_indexes(home)
            _delete_logs(home)
    told = _told(shelf, key) | {
        "stores": [str(folder) for folder in folders],
        "finished_earlier_change": finished,
        "in_the_clear": [str(path) for path in _in_the_clear(home)] if key.sealed else [],
    }
    if json:
        print_json(told)
    else:
        _print_told(told)


def _print_told(told: dict[str, object]) -> None:
    stores, clear = told["stores"], told["in_the_clear"]
    if told["finished_earlier_change"]:
        print_text("finished a change of the key that was interrupted before")
    print_text(f"{'sealed' if told['sealed'] else 'plain'} stores have the key {told['key_id']}")
    for store in stores if isinstance(stores, list) else ():
        print_text(f"  {store}")
    print_text(f"copy the key, and keep it apart from the home: {told['where']}")
    print_text("without it nobody can open the stores")
    for path in clear if isinstance(clear, list) else ():
        print_text(f"not sealed, delete it or take it away: {path}")


def _told(shelf: KeyShelf, key: HomeKey) -> dict[str, object]:
    return {"key_id": key.key_id, "sealed": key.sealed, "where": shelf.where}


def _delete_logs(home: Home) -> None:
    """Delete what the services logged: before the home was sealed that had names and ids."""
    from muniment.cli.services import shipped_services

    for name in shipped_services():
        for log in home.logs.glob(f"{name}.log*"):
            log.unlink()


def _in_the_clear(home: Home) -> list[Path]:
    """Stores that the home keeps from before it was sealed."""
    from muniment.kit.store.schemas import peek_schema
    from muniment.kit.stores import store_folders

    found = []
    for folder in store_folders(home):
        for kept in sorted(folder.parent.glob(f"{folder.name}.*")):
            schema = peek_schema(kept)
            if schema is not None and not schema.sealed:
                found.append(kept)
    return found


def open_shelf(home: Home) -> KeyShelf:
    """Where the home's key is, as the settings of this process say."""
    # Settings take half a second to import, and most commands do without.
    from muniment.kit.home_key import KeyShelf
    from muniment.kit.settings import load_settings

    settings = load_settings(home)
    return KeyShelf(home, settings.key_store, settings.key_folder)


def _present(home: Home, shelf: KeyShelf) -> HomeKey:
    from muniment.kit.store.schemas import peek_schema
    from muniment.kit.stores import store_folders

    key = shelf.load()
    if key is not None:
        return key
    for folder in store_folders(home):
        stored = peek_schema(folder)
        if stored is not None and stored.key_id:
            # It had one, which is not where it should be.
            return shelf.load_for(stored)
    raise NotFoundError(
        "this home has no key yet",
        reason="KEY_UNKNOWN",
        fix="`muniment up` makes one with the first store, `muniment key create` a sealed one",
    )
