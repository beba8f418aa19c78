"""Snapshots of a home that was sealed after they were saved: their files are sealed, too."""

from __future__ import annotations

from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.errors import TamperedError
from muniment.kit.files import file_digest, sync_folder
from muniment.kit.randomness import Randomness
from muniment.kit.store import Store
from muniment.slots import snapshots
from muniment.slots.places import SEALED_SUFFIX, require_whole
from muniment.slots.sealing import FILE_KEY_BYTES, seal_file
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["seal_up"]

_log = structlog.get_logger()


def seal_up(store: Store, folder: Path, randomness: Randomness) -> None:
    """Seal what lies in our folder in plain, if the home is sealed. Runs in a thread."""
    if not store.protection.sealed:
        return
    with store.read() as reader:
        rows = snapshots.snapshots(reader).rows
    for row in rows:
        if row.snapshot.place != slots_pb2.SNAPSHOT_PLACE_FOLDER:
            continue
        if not row.snapshot.is_sealed:
            _seal(store, folder, row, randomness.token(FILE_KEY_BYTES))
        # A crash may have come before this.
        plain = folder / row.snapshot.file_name.removesuffix(SEALED_SUFFIX)
        plain.unlink(missing_ok=True)
    sync_folder(folder)


def _seal(store: Store, folder: Path, row: store_pb2.StoredSnapshot, key: bytes) -> None:
    snapshot = row.snapshot
    plain = folder / snapshot.file_name
    sealed = folder / f"{snapshot.file_name}{SEALED_SUFFIX}"
    sealed.unlink(missing_ok=True)
    try:
        require_whole(plain, snapshot)
    except TamperedError:
        return
    seal_file(plain, sealed, key)
    snapshot.file_name, snapshot.file_path = sealed.name, str(sealed)
    snapshot.is_sealed, snapshot.size_bytes = True, sealed.stat().st_size
    snapshot.sha256 = file_digest(sealed, lambda done: None)
    store.write(lambda writer: snapshots.replace(writer, snapshot, key)).result()
    faults.reach("slots.before_unlink")
    _log.info("a snapshot is sealed", id=snapshot.snapshot_id)
