"""Copies of the home's store: taken while it is used, and brought back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli.keys import open_shelf
from muniment.cli.output import Json, print_json, print_text, progress
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home

if TYPE_CHECKING:
    from muniment.kit.home_key import HomeKey, KeyShelf
    from muniment.kit.progress import Report
    from muniment.kit.store.restore import Copy
    from muniment.v1 import maintenance_pb2

__all__ = ["backup", "restore"]


def backup(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The folder to make; it may not exist yet.")
    ],
    json: Json = False,
) -> None:
    """Copy the store as it is now into a folder, while it is used.

    The copy needs the home's key, which is not in it.
    """
    home: Home = context.obj
    with progress("backing up") as report:
        told = asyncio.run(_backup(home, target.absolute(), report))
    if json:
        print_json(
            {
                "folder": told.folder,
                "incarnation": told.incarnation,
                "position": told.position,
                "size_bytes": told.size_bytes,
                "key_id": told.key_id,
            }
        )
        return
    print_text(f"{told.folder} has all changes up to {told.position} ({told.size_bytes} bytes)")
    print_text(f"to bring it back the key {told.key_id} is needed: {open_shelf(home).where}")


async def _backup(home: Home, target: Path, report: Report) -> maintenance_pb2.BackupStoreResult:
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.workflows.maintenance import backup_store

    async with memory_clients(home) as clients:
        return await backup_store(clients, CallContext(caller="cli"), str(target), report)


def restore(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A backup, or a store's folder that was kept."),
    ],
    json: Json = False,
) -> None:
    """Bring a copy of the store back; the present store is kept beside it.

    The copy is examined first. The services are stopped meanwhile, and started after it, unless
    the copy is of an earlier version of the tables, which they would bring up to date at once.
    """
    from muniment.cli.standstill import standstill
    from muniment.kit.clock import SystemClock
    from muniment.kit.randomness import SystemRandomness
    from muniment.kit.store.restore import restore_copy
    from muniment.kit.stores import MEMORY_STORE

    home: Home = context.obj
    folder = MEMORY_STORE.folder(home)
    randomness = SystemRandomness()
    with progress("restoring") as report:
        copy = _examined(home, source, report)
        shelf = open_shelf(home)
        key = _key_of(shelf, copy)
        with standstill(home) as still:
            present = _present_key(shelf, folder)
            rewriting = None
            if key is not None and present is None:
                shelf.keep(key, randomness)
            elif key is not None and present is not None and present != key:
                rewriting = key.protection(randomness), present.protection(randomness)
            kept = restore_copy(copy, folder, SystemClock(), report, rewriting=rewriting)
            still.start_after = copy.schema.version == MEMORY_STORE.version
    told = {
        "restored": str(source),
        "schema_version": copy.schema.version,
        "position": copy.position,
        "created": copy.created,
        "kept": None if kept is None else str(kept),
        "started": still.start_after,
    }
    if json:
        print_json(told)
    else:
        _print_restored(told)


def _print_restored(told: dict[str, object]) -> None:
    print_text(f"{told['restored']} is the store now")
    if told["kept"] is not None:
        print_text(f"the store before it is kept in {told['kept']}")
    if told["started"]:
        print_text("the services run; the search index is being made anew")
    else:
        print_text(
            f"it has schema version {told['schema_version']}: use it with the version of muniment"
            " that wrote it; `muniment up` of this one would bring it up to date again"
        )


def _examined(home: Home, source: Path, report: Report) -> Copy:
    from muniment.kit.store.restore import examine_copy
    from muniment.kit.stores import MEMORY_STORE

    if source.resolve() == MEMORY_STORE.folder(home):
        raise PreconditionError(
            f"{source} is the store itself",
            reason="BACKUP_UNKNOWN",
            field="source",
            fix="name the folder that `muniment backup` made",
        )
    copy = examine_copy(source, MEMORY_STORE.service, report)
    if not MEMORY_STORE.reads(copy.schema.version):
        raise PreconditionError(
            f"{source} has schema version {copy.schema.version}, this program reads "
            f"{MEMORY_STORE.oldest_version} to {MEMORY_STORE.version}",
            reason="SCHEMA_UNKNOWN",
            field="source",
            fix="use the version of muniment that wrote it",
        )
    return copy


def _key_of(shelf: KeyShelf, copy: Copy) -> HomeKey | None:
    """The key that the copy is under; None for one from before there were keys.

    Raises:
        PreconditionError: It is not here, or does not fit the copy.
    """
    from muniment.kit.randomness import SystemRandomness
    from muniment.kit.store.restore import check_copy

    if not copy.schema.key_id:
        return None
    key = shelf.find(copy.schema)
    if key is None:
        raise PreconditionError(
            f"the copy needs the key {copy.schema.key_id}, which is not in {shelf.where}",
            reason="STORE_KEY_OTHER",
            field="source",
            fix="put a copy of that key's file beside it",
        )
    check_copy(copy, key.protection(SystemRandomness()))
    return key


def _present_key(shelf: KeyShelf, folder: Path) -> HomeKey | None:
    """The key that the store, which nobody has open, is or will be under; None for none yet."""
    from muniment.kit.store.schemas import peek_schema

    try:
        stored = peek_schema(folder)
    except PreconditionError:
        stored = None  # It is broken, which may be why a copy is brought back.
    own = [one for one in (shelf.load(), shelf.load_next()) if one is not None]
    opening = [one for one in own if stored is not None and one.opens(stored)]
    return next(iter([*opening, *own]), None)
