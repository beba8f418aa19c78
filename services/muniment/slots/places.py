"""Where save files lie: our folder, and the one that the server writes into.

Both may be one; the server's may be out of reach. A file is called by its bare name, and nothing
outside these folders is touched.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.errors import (
    InvalidArgumentError,
    LimitError,
    PreconditionError,
    TamperedError,
)
from muniment.kit.files import copy_file, file_digest, sync_file, sync_folder
from muniment.slots.failures import printable
from muniment.v1 import slots_pb2

__all__ = [
    "PLAIN_SUFFIX",
    "SEALED_SUFFIX",
    "Places",
    "damage_of",
    "file_trouble",
    "kept_path",
    "recorded_folder",
    "require_whole",
]

_FOLDER_NAME = "snapshots"
"""Of our folder, beside the store, where the settings name no other."""

SEALED_SUFFIX = ".sealed"
"""Of a sealed file, behind the name that the server gave it."""

PLAIN_SUFFIX = ".plain"
"""Of its plain content for the moment of a restore, behind that."""


@dataclass(frozen=True)
class Places:
    """The folders of one server's save files."""

    folder: Path
    """Ours."""
    server_folder: Path | None
    """The server's, as it is seen from here; None where nobody told."""

    def out_of_reach(self) -> str | None:
        """Why the server's files cannot be used from here, as said of the setting; None if so."""
        folder = self.server_folder
        if folder is None:
            return "is not set"
        if not folder.is_absolute():
            return f"is {printable(str(folder))}, which is not absolute"
        try:
            found = folder.stat()
        except (OSError, ValueError):
            return f"is {printable(str(folder))}, which is no folder that this user can see"
        if not stat.S_ISDIR(found.st_mode):
            return f"is {folder}, which is no folder"
        # In a sticky folder others' files cannot be removed.
        is_sticky = found.st_mode & stat.S_ISVTX and os.getuid() not in {0, found.st_uid}
        if is_sticky or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return f"is {folder}, from which this user cannot take files"
        return None

    def in_reach(self) -> list[Path]:
        """The folders in which files of ours can be found and removed, the server's first."""
        if self.server_folder is None or self.out_of_reach() is not None or self.is_shared():
            return [self.folder]
        return [self.server_folder, self.folder]

    def written(self, name: str) -> Path | None:
        """Where the server has put the file, or None where that is out of reach."""
        for folder in self.in_reach():
            if is_file(folder / name):
                return folder / name
        return None

    def clear(self, name: str) -> None:
        """Remove what is left of an earlier file of that name, which is ours to use again."""
        for folder in self.in_reach():
            (folder / name).unlink(missing_ok=True)

    def is_shared(self) -> bool:
        """Whether the server writes into our folder."""
        return self.server_folder is None or self.is_servers(self.folder)

    def is_servers(self, folder: Path) -> bool:
        """Whether the server writes into that folder."""
        return self.server_folder is not None and _same(self.server_folder, folder)

    def keep(self, written: Path, name: str) -> Path:
        """Have the file in our folder under that name; durable."""
        kept = self.folder / name
        if written != kept:
            move_file(written, kept)
        with suppress(PermissionError):  # It is of the server's user, who may leave it to us.
            kept.chmod(0o600)
        sync_file(kept)
        sync_folder(self.folder)
        return kept

    def offer(self, kept: Path) -> Path | None:
        """Put a file of ours where the server reads; what is to be removed afterwards."""
        if self.server_folder is None or self.is_servers(kept.parent):
            return None
        offered = self.server_folder / kept.name
        offered.unlink(missing_ok=True)
        copy_or_link(kept, offered)
        return offered

    def plain(self, name: str) -> Path:
        """Where the sealed file of that name lies in plain, for the moment of a restore."""
        return (self.server_folder or self.folder) / f"{name}{PLAIN_SUFFIX}"

    def name_in(self, path: str) -> str:
        """The bare name of a file that is in one of the folders, or is a bare name already.

        Raises:
            InvalidArgumentError: It is elsewhere.
        """
        named = Path(path)
        if named.name == path and path not in {"", ".", ".."}:
            return path
        for folder in (self.folder, self.server_folder):
            # What is above the file is resolved; the file itself may be no link.
            if folder is not None and named.name and _same(named.parent, folder):
                return named.name
        raise InvalidArgumentError(
            f"is not in the folder of snapshots, {self.folder}",
            reason="PATH_OUTSIDE_FOLDER",
            field="path",
            fix="use the path or the id that session.snapshot gave;"
            " `muniment slots snapshots` lists them",
        )

    def require_room(self, bytes_needed: int, spare_bytes: int) -> None:
        """Make sure that the disks have room, as far as they can be seen.

        Raises:
            LimitError: One has not.
        """
        for folder in {self.folder, self.server_folder or self.folder}:
            try:
                free = shutil.disk_usage(folder).free
            except OSError:
                continue
            if free < bytes_needed + spare_bytes:
                raise LimitError(
                    f"the disk of {folder} has {free} bytes free, and a snapshot of about"
                    f" {bytes_needed} is to leave {spare_bytes}",
                    reason="DISK_FULL",
                    fix="make room, remove snapshots with `muniment slots delete`, or lower"
                    " `snapshots_spare_bytes`",
                )


@contextmanager
def file_trouble(what: str) -> Iterator[None]:
    """Say in our words what the file system refuses.

    Raises:
        LimitError: The disk is full.
        PreconditionError: Anything else.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise LimitError(
                f"{what}: {why}",
                reason="DISK_FULL",
                fix="make room, or remove snapshots with `muniment slots delete`",
            ) from error
        raise PreconditionError(
            f"{what}: {why}",
            reason="FOLDER_UNUSABLE",
            fix="let this user read and write the folder of snapshots and llama-server's"
            " --slot-save-path",
        ) from error


def is_file(path: Path) -> bool:
    """Whether a regular file is there; a link is none."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def move_file(source: Path, target: Path) -> None:
    """Move a file, by the cheapest way there is."""
    copy_or_link(source, target)
    source.unlink()


def copy_or_link(source: Path, target: Path) -> None:
    """Have the file there too: as a hard link on one disk, else as a copy."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
        copy_file(source, target, lambda done: None)


def require_whole(path: Path, snapshot: slots_pb2.Snapshot) -> None:
    """Make sure that the file is to the byte what was saved.

    Raises:
        TamperedError: It is gone, no file, or was changed.
    """
    told = damage_of(path, snapshot.size_bytes)
    if told is None and file_digest(path, lambda done: None) != snapshot.sha256:
        told = "was changed since it was saved"
    if told is not None:
        raise TamperedError(
            f"the snapshot's file {path.name} {told}",
            reason="SNAPSHOT_DAMAGED",
            fix="use another snapshot; `muniment slots snapshots` lists them",
        )


def damage_of(path: Path, size_bytes: int) -> str | None:
    """What is wrong with the file, as far as its size tells; None for nothing."""
    if not is_file(path):
        return "is gone"
    size = path.stat().st_size
    return None if size == size_bytes else f"has {size} bytes and had {size_bytes}"


def kept_path(snapshot: slots_pb2.Snapshot, folder: Path, store_folder: Path) -> Path:
    """Its file: in our folder, or where it was kept before another folder was made ours."""
    kept = folder / snapshot.file_name
    before = recorded_folder(snapshot, store_folder)
    if before is None or is_file(kept) or not is_file(before / snapshot.file_name):
        return kept
    return before / snapshot.file_name


def recorded_folder(snapshot: slots_pb2.Snapshot, store_folder: Path) -> Path | None:
    """The folder that the file was put into; None where it has none, or it is another home's.

    A home that is a copy of another one, or was restored from its backup, knows of its files.
    """
    if not snapshot.HasField("file_path"):
        return None
    folder = Path(snapshot.file_path).parent
    store = folder.parent / store_folder.name
    is_others = folder.name == _FOLDER_NAME and store.is_dir() and not _same(store, store_folder)
    return None if is_others else folder


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # A name with a zero byte is none.
        return False
