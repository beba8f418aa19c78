"""Snapshots of a home that was sealed after they were saved: their files are sealed, too.

Each where it lies. What cannot be sealed is told, and keeps nobody from starting.
"""

from __future__ import annotations

from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.errors import TamperedError
from muniment.kit.files import file_digest, sync_folder
from muniment.kit.randomness import Randomness
from muniment.kit.store import Store
from muniment.slots import snapshots
from muniment.slots.places import SEALED_SUFFIX, kept_path, require_whole
from muniment.slots.sealing import FILE_KEY_BYTES, seal_file
from muniment.v1 import slots_pb2, store_pb2

__all__ = ["seal_up"]

_log = structlog.get_logger()


def seal_up(store: Store, folder: Path, randomness: Randomness) -> None:
    """Seal what lies in plain where we can reach it, if the home is sealed. Runs in a thread."""
    if not store.protection.sealed:
        return
    with store.read() as reader:
        rows = snapshots.snapshots(reader).rows
    for row in rows:
        snapshot_id = row.snapshot.snapshot_id
        if row.snapshot.place != slots_pb2.SNAPSHOT_PLACE_FOLDER:
            _warn(snapshot_id, "it is where only its server can reach it")
            continue
        kept = kept_path(row.snapshot, folder, store.path)
        try:
            if not row.snapshot.is_sealed:
                kept = _seal(store, kept, row, randomness.token(FILE_KEY_BYTES))
            # A crash may have come before this.
            (kept.parent / kept.name.removesuffix(SEALED_SUFFIX)).unlink(missing_ok=True)
            sync_folder(kept.parent)
        except TamperedError as error:
            _warn(snapshot_id, error.message)
        except OSError as error:
            _warn(snapshot_id, f"{error.filename or kept}: {error.strerror or error}")


def _seal(store: Store, plain: Path, row: store_pb2.StoredSnapshot, key: bytes) -> Path:
    """The sealed file, which stands for the plain one from now on.

    Raises:
        TamperedError: The plain one is not there, or not what was saved.
    """
    snapshot = row.snapshot
    require_whole(plain, snapshot)
    sealed = plain.with_name(f"{plain.name}{SEALED_SUFFIX}")
    sealed.unlink(missing_ok=True)
    seal_file(plain, sealed, key)
    snapshot.file_name, snapshot.file_path = sealed.name, str(sealed)
    snapshot.is_sealed, snapshot.size_bytes = True, sealed.stat().st_size
    snapshot.sha256 = file_digest(sealed, lambda done: None)
    store.write(lambda writer: snapshots.replace(writer, snapshot, key)).result()
    faults.reach("slots.before_unlink")
    _log.info("a snapshot is sealed", id=snapshot.snapshot_id)
    return sealed


def _warn(snapshot_id: str, why: str) -> None:
    _log.warning("a snapshot's file is not sealed", id=snapshot_id, why=why)
