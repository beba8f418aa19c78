"""Copies of the home's stores: taken while they are used, and brought back."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
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
    from muniment.kit.stores import StoreVersions
    from muniment.v1 import maintenance_pb2

__all__ = ["backup", "restore"]

_UNFINISHED = ".unfinished"
"""Ends the name of a backup that is being made."""


def backup(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The folder to make; it may not exist yet.")
    ],
    json: Json = False,
) -> None:
    """Copy all stores as they are now into a folder, while they are used.

    The copies need the home's key, which is not in them.
    """
    from muniment.kit.store.backup import require_absent

    home: Home = context.obj
    target = target.absolute()
    require_absent(target)
    with progress("backing up") as report:
        copies, left_out = asyncio.run(_backup(home, target, report))
    memory = copies[0]
    if json:
        print_json(
            {
                "folder": str(target),
                "incarnation": memory.incarnation,
                "position": memory.position,
                "size_bytes": sum(copy.size_bytes for copy in copies),
                "key_id": memory.key_id,
                "tenants": len(copies) - 1,
                "left_out": left_out,
            }
        )
    else:
        _print_backup(home, target, copies)
    if left_out:
        raise PreconditionError(
            f"{target} lacks records that cannot be opened: {', '.join(left_out)}",
            reason="BACKUP_INCOMPLETE",
            fix="`muniment verify-store` tells why",
        )


def _print_backup(
    home: Home, target: Path, copies: list[maintenance_pb2.BackupStoreResult]
) -> None:
    memory, size = copies[0], sum(copy.size_bytes for copy in copies)
    print_text(f"{target} has all changes up to {memory.position} ({size} bytes)")
    if copies[1:]:
        print_text(f"the records of {len(copies) - 1} tenants are in it")
    print_text(f"to bring it back the key {memory.key_id} is needed: {open_shelf(home).where}")


async def _backup(
    home: Home, target: Path, report: Report
) -> tuple[list[maintenance_pb2.BackupStoreResult], list[str]]:
    """Copy the memory, then the records of each tenant; the folder has its name when all is in it.

    What came of each copy, the memory's first; and the folders of records that cannot be opened.
    """
    from muniment.cli.answers import memory_clients
    from muniment.kit.context import CallContext
    from muniment.kit.files import sync_folder
    from muniment.kit.stores import RECORDS
    from muniment.v1 import records_pb2
    from muniment.workflows.maintenance import backup_store
    from muniment.workflows.records import ask

    context = CallContext(caller="cli")
    making = target.with_name(f"{target.name}{_UNFINISHED}")
    async with memory_clients(home) as clients:
        copies = [await backup_store(clients, context, str(making), report)]
        try:
            request = records_pb2.ListTenantsRequest()
            tenants = await ask(clients, context, clients.records.ListTenants, request)
            for tenant in tenants.tenants:
                of_tenant = replace(context, tenant_id=tenant.tenant_id)
                folder = making / RECORDS.service / Path(tenant.path).parent.name
                copies.append(await backup_store(clients, of_tenant, str(folder), report))
            making.rename(target)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
    return copies, [one.path for one in tenants.unopened]


def restore(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A backup, or a store's folder that was kept."),
    ],
    json: Json = False,
) -> None:
    """Bring a copy of the stores back; the present ones are kept beside them.

    The copies are examined first. The services are stopped meanwhile, and started after it, unless
    a copy is of an earlier version of the tables, which they would bring up to date at once.
    Tenants that a backup knows nothing of stay as they are.
    """
    from muniment.cli.standstill import standstill
    from muniment.kit.clock import SystemClock
    from muniment.kit.randomness import SystemRandomness
    from muniment.kit.store.restore import restore_copy

    home: Home = context.obj
    randomness = SystemRandomness()
    with progress("restoring") as report:
        copies = _examined(home, source, report)
        shelf = open_shelf(home)
        keys = [_key_of(shelf, copy) for copy, _ in copies]
        kept: list[str] = []
        with standstill(home) as still:
            present = _present_key(shelf, [folder for _, folder in copies])
            for (copy, folder), key in zip(copies, keys, strict=True):
                rewriting = None
                if key is not None and present is None:
                    shelf.keep(key, randomness)
                    present = key
                elif key is not None and present is not None and present != key:
                    rewriting = key.protection(randomness), present.protection(randomness)
                aside = restore_copy(copy, folder, SystemClock(), report, rewriting=rewriting)
                kept += [] if aside is None else [str(aside)]
                _put_in_force(home, folder)
            still.start_after = all(_is_present_version(home, *one) for one in copies)
    first = copies[0][0]
    told = {
        "restored": str(source),
        "schema_version": first.schema.version,
        "position": first.position,
        "created": first.created,
        "kept": kept[0] if kept else None,
        "kept_all": kept,
        "started": still.start_after,
    }
    if json:
        print_json(told)
    else:
        _print_restored(told, kept)


def _print_restored(told: dict[str, object], kept: list[str]) -> None:
    print_text(f"{told['restored']} is the store now")
    for aside in kept:
        print_text(f"the store before it is kept in {aside}")
    if told["started"]:
        print_text("the services run; the search index is being made anew")
    else:
        print_text(
            f"it has schema version {told['schema_version']}: use it with the version of muniment"
            " that wrote it; `muniment up` of this one would bring it up to date again"
        )


def _versions(home: Home, folder: Path) -> StoreVersions:
    """What can be read of the store in the folder."""
    from muniment.kit.stores import MEMORY_STORE, RECORDS

    return MEMORY_STORE if folder == MEMORY_STORE.folder(home) else RECORDS


def _is_present_version(home: Home, copy: Copy, folder: Path) -> bool:
    return copy.schema.version == _versions(home, folder).version


def _put_in_force(home: Home, folder: Path) -> None:
    """Let a tenant have the generation that was restored here, where nothing says which it has."""
    from muniment.kit.files import replace_file
    from muniment.kit.stores import CURRENT_FILE, MEMORY_STORE, current_generation, generations

    if folder == MEMORY_STORE.folder(home):
        return
    tenant = folder.parent.parent
    try:
        known = current_generation(tenant) is not None
    except PreconditionError:
        known = False
    if not known:
        replace_file(tenant / CURRENT_FILE, f"{max(generations(tenant))}\n".encode())


def _examined(home: Home, source: Path, report: Report) -> list[tuple[Copy, Path]]:
    """The copies in the folder, and which store's place each takes: the memory's first."""
    from muniment.kit.stores import MEMORY_STORE, RECORDS, present_generation, store_folders

    memory = MEMORY_STORE.folder(home)
    if source.resolve() in store_folders(home):
        raise PreconditionError(
            f"{source} is the store itself",
            reason="BACKUP_UNKNOWN",
            field="source",
            fix="name the folder that `muniment backup` made",
        )
    beside = source.resolve().parent / memory.name
    if beside in store_folders(home) and beside != memory:
        return [(_examined_one(source, RECORDS, report), beside)]
    found = [(_examined_one(source, MEMORY_STORE, report), memory)]
    for folder in sorted((source / RECORDS.service).glob("*")):
        copy = _examined_one(folder, RECORDS, report)
        found.append((copy, present_generation(home, folder.name) / memory.name))
    return found


def _examined_one(source: Path, versions: StoreVersions, report: Report) -> Copy:
    from muniment.kit.store.restore import examine_copy

    copy = examine_copy(source, versions.service, report)
    if not versions.reads(copy.schema.version):
        raise PreconditionError(
            f"{source} has schema version {copy.schema.version}, this program reads "
            f"{versions.oldest_version} to {versions.version}",
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


def _present_key(shelf: KeyShelf, folders: list[Path]) -> HomeKey | None:
    """The key that the stores, which nobody has open, are or will be under; None for none yet."""
    from muniment.kit.store.schemas import peek_schema

    own = [one for one in (shelf.load(), shelf.load_next()) if one is not None]
    for folder in folders:
        try:
            stored = peek_schema(folder)
        except PreconditionError:
            continue  # It is broken, which may be why a copy is brought back.
        for key in own:
            if stored is not None and key.opens(stored):
                return key
    return next(iter(own), None)
