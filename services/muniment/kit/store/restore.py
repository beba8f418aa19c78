"""Brings a copy of a store back: looks first, then puts it in the store's place.

A copy is a backup, or a store's folder as it lay: what a migration or a restore kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muniment.kit.clock import Clock
from muniment.kit.errors import LimitError, PreconditionError, TamperedError
from muniment.kit.files import copy_file, file_digest, make_file
from muniment.kit.progress import Report
from muniment.kit.store.backup import DATA_FILE, read_manifest, read_state
from muniment.kit.store.folders import NEW_LIFE, begin_building, free_name, settle, swap_in
from muniment.kit.store.protection import Protection
from muniment.kit.store.rewrite import rewrite_copy
from muniment.kit.store.schemas import peek_schema
from muniment.v1 import store_pb2

__all__ = ["Copy", "check_copy", "examine_copy", "restore_copy"]

_OWN_DATA_FILE = "data.mdb"


@dataclass(frozen=True)
class Copy:
    """A copy that can be brought back."""

    data: Path
    """The file that has it all."""
    schema: store_pb2.StoredSchema
    sha256: bytes | None
    """What the file must hash to; None for a store's folder, which says nothing of it."""
    position: int | None
    created: str | None
    """When it was made, where that is known."""


def examine_copy(source: Path, service: str, report: Report) -> Copy:
    """Hold the copy in the folder against what it says of itself.

    Raises:
        PreconditionError: It is no copy of that service's store, half-written or damaged.
    """
    if (source / _OWN_DATA_FILE).is_file():
        schema = peek_schema(source)
        if schema is not None:
            return Copy(source / _OWN_DATA_FILE, schema, None, None, None)
    data = source / DATA_FILE
    if not data.is_file():
        raise PreconditionError(
            f"{source} is neither a backup nor a store's folder",
            reason="BACKUP_UNKNOWN",
            field="source",
            fix="name the folder that `muniment backup` made",
        )
    manifest = read_manifest(source)
    if manifest.service != service:
        raise _refused(source, f"it is of the service {manifest.service}")
    size = data.stat().st_size
    found = file_digest(data, lambda done: report("reading the backup", done, size))
    if (size, found.hex()) != (manifest.size_bytes, manifest.sha256):
        raise _refused(source, "its data are not those that were written")
    schema = peek_schema(data)
    told = (manifest.schema_version, manifest.key_id, manifest.sealed)
    if schema is None or (schema.version, schema.key_id, schema.sealed) != told:
        raise _refused(source, "its manifest belongs to another store")
    return Copy(data, schema, found, manifest.position, manifest.created)


def check_copy(copy: Copy, protection: Protection) -> None:
    """Hold the copy's own account against its key and its manifest.

    Raises:
        PreconditionError: They do not fit.
    """
    try:
        state = read_state(copy.data, protection)
    except TamperedError as error:
        raise _refused(copy.data, "its account of itself fails its check") from error
    if copy.position not in (None, state.position):
        raise _refused(copy.data, "its manifest belongs to another store")


def restore_copy(
    copy: Copy,
    folder: Path,
    clock: Clock,
    report: Report,
    *,
    rewriting: tuple[Protection, Protection] | None = None,
) -> Path | None:
    """Put the copy in the place of the store in the folder, which nobody has open.

    With `rewriting` the copy is under the first protection, and the store under the second.

    Returns:
        Where the store that was there is now; None where there was none.

    Raises:
        PreconditionError: The copy changed since it was examined.
        TamperedError: It is not as it was written, so it cannot be rewritten.
        LimitError: It cannot be copied. The store is as it was, as after each error.
    """
    building = begin_building(folder)
    try:
        if rewriting is None:
            _copy(copy, building, report)
        else:
            source = copy.data.parent if copy.data.name == _OWN_DATA_FILE else copy.data
            rewrite_copy(source, building, *rewriting, report)
        with make_file(building / NEW_LIFE):
            pass
    except OSError as error:
        settle(folder)
        raise LimitError(
            f"the copy could not be brought back: {error}",
            reason="RESTORE_FAILED",
            fix="check the space and health of the disk; nothing was changed",
        ) from error
    except BaseException:
        settle(folder)
        raise
    aside = free_name(folder, "before-restore", clock) if folder.exists() else None
    swap_in(folder, aside=aside)
    return aside


def _copy(copy: Copy, building: Path, report: Report) -> None:
    size = copy.data.stat().st_size
    found = copy_file(
        copy.data,
        building / _OWN_DATA_FILE,
        lambda done: report("copying the store", done, size),
    )
    if copy.sha256 not in (None, found):
        raise _refused(copy.data, "it changed while it was read")


def _refused(source: Path, why: str) -> PreconditionError:
    return PreconditionError(
        f"{source} cannot be restored: {why}",
        reason="BACKUP_DAMAGED",
        field="source",
        fix="use another backup",
    )
