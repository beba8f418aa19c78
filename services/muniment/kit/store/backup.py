"""Copies of a store: made while it is written, and held against what they say of themselves.

A backup is a folder with the store as one file and a manifest, which is written last. A folder
with the file and no manifest is half a backup, and is refused.
"""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import lmdb

from muniment.kit.clock import timestamp
from muniment.kit.errors import InvalidArgumentError, LimitError, PreconditionError
from muniment.kit.files import file_digest, make_file, private_folder, replace_file
from muniment.kit.progress import Report
from muniment.kit.store.protection import Protection
from muniment.kit.store.schemas import peek_schema
from muniment.kit.store.store import Store
from muniment.kit.store.tables import META, STATE_KEY
from muniment.v1 import store_pb2

__all__ = [
    "DATA_FILE",
    "MANIFEST_FILE",
    "Manifest",
    "backup_store",
    "read_manifest",
    "read_state",
    "require_absent",
]

DATA_FILE = "store.mdb"
"""The store, as LMDB's `mdb_copy -c` writes it."""

MANIFEST_FILE = "manifest.json"

_FORMAT = 1
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself."""

    format: int
    service: str
    """Whose store it is: a service's, or `records` for a tenant's."""
    schema_version: int
    incarnation: str
    position: int
    """The newest change that it has."""
    key_id: str
    """The key that opens it; not a secret."""
    sealed: bool
    size_bytes: int
    sha256: str
    """Of the data file, as hex digits."""
    created: str
    """ISO 8601, UTC."""


def backup_store(store: Store, name: str, target: Path, report: Report) -> Manifest:
    """Copy the store as it is at one moment into the folder, which must not exist yet.

    `name` is what the manifest calls the store by.

    Everything that was acknowledged before is in it. Readers and writers go on.

    Raises:
        InvalidArgumentError: The path is not absolute, or in the folder of the store's service.
        PreconditionError: There is something at the path, or no folder can be made there.
        LimitError: It cannot be written; nothing is left behind.
    """
    # Beside the store it would pass for a copy that was set aside, or escape a purge.
    if not target.is_absolute() or target.resolve().is_relative_to(store.path.parent.resolve()):
        raise InvalidArgumentError(
            f"{target} is not an absolute path outside {store.path.parent}",
            reason="BACKUP_TARGET_INVALID",
            field="target_folder",
            fix="name a folder that does not exist yet",
        )
    require_absent(target)
    try:
        private_folder(target)
    except PreconditionError as error:
        # Its own advice is about homes.
        raise PreconditionError(
            error.message,
            reason=error.reason,
            field="target_folder",
            fix="name a folder in a place where you may make one",
        ) from error
    try:
        manifest = _copy(store, name, target / DATA_FILE, report)
        text = json.dumps(asdict(manifest), indent=2) + "\n"
        replace_file(target / MANIFEST_FILE, text.encode())
    except (lmdb.Error, OSError) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise LimitError(
            f"the backup could not be written: {error}",
            reason="BACKUP_FAILED",
            fix="check the space and health of the disk; nothing was left there",
        ) from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return manifest


def require_absent(target: Path) -> None:
    """Refuse a target at which there is something.

    Raises:
        PreconditionError: There is.
    """
    if target.exists():
        raise PreconditionError(
            f"{target} exists",
            reason="BACKUP_TARGET_EXISTS",
            field="target_folder",
            fix="name a folder that does not exist yet",
        )


def _copy(store: Store, name: str, data: Path, report: Report) -> Manifest:
    created = timestamp(store.clock).ToJsonString()
    with make_file(data) as file, ThreadPoolExecutor(1, "backup") as copier:
        # LMDB tells nothing of how far it is; the file's size does.
        expected = store.size_bytes()
        done = threading.Event()
        copying = copier.submit(store.copy_to, file.fileno())
        copying.add_done_callback(lambda _: done.set())
        while not done.wait(_POLL_SECONDS):
            report("copying the store", min(data.stat().st_size, expected), expected)
        copying.result()
    schema = peek_schema(data)
    state = read_state(data, store.protection)
    size = data.stat().st_size
    digest = file_digest(data, lambda bytes_done: report("reading it back", bytes_done, size))
    assert schema is not None
    return Manifest(
        format=_FORMAT,
        service=name,
        schema_version=schema.version,
        incarnation=state.incarnation,
        position=state.position,
        key_id=schema.key_id,
        sealed=schema.sealed,
        size_bytes=size,
        sha256=digest.hex(),
        created=created,
    )


def read_state(data: Path, protection: Protection) -> store_pb2.StoredState:
    """The state of a copied store, or of one that nobody of this process has open.

    Raises:
        TamperedError: It does not pass its check.
        PreconditionError: There is none.
    """
    address = protection.address(STATE_KEY)
    with closing(
        lmdb.open(str(data), subdir=data.is_dir(), readonly=True, lock=False, max_dbs=1)
    ) as environment:
        database = environment.open_db(META.name.encode(), create=False)
        with environment.begin() as transaction:
            raw = transaction.get(address, db=database)
    if raw is None:
        raise _damaged(data, "it has no state")
    _, payload = protection.open_row(META.name, address, bytes(raw))
    return store_pb2.StoredState.FromString(payload.value)


def read_manifest(folder: Path) -> Manifest:
    """What the backup in the folder says of itself.

    Raises:
        PreconditionError: It is half-written, damaged, or of a later format.
    """
    try:
        told = json.loads((folder / MANIFEST_FILE).read_text())
    except FileNotFoundError as error:
        raise PreconditionError(
            f"the backup in {folder} was never finished: it has no {MANIFEST_FILE}",
            reason="BACKUP_UNFINISHED",
            field="source",
            fix="use another backup",
        ) from error
    except (OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    if isinstance(told, dict) and told.get("format") != _FORMAT:
        raise PreconditionError(
            f"the backup in {folder} is of another format than {_FORMAT}",
            reason="BACKUP_FORMAT_UNKNOWN",
            field="source",
            fix="use the version of muniment that wrote it",
        )
    return _checked(folder, told)


def _checked(folder: Path, told: Any) -> Manifest:
    kinds = {field.name: field.type for field in dataclass_fields(Manifest)}
    if not isinstance(told, dict) or set(told) != set(kinds):
        raise _damaged(folder, "its manifest lacks something")
    for name, kind in kinds.items():
        if type(told[name]).__name__ != kind:
            raise _damaged(folder, f"{name} is no {kind}")
    return Manifest(**told)


def _damaged(path: Path, why: str) -> PreconditionError:
    return PreconditionError(
        f"the backup in {path} is damaged: {why}",
        reason="BACKUP_DAMAGED",
        field="source",
        fix="use another backup",
    )
