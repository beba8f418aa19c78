"""Files and folders that only their owner can read; replacement that survives a crash."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.kit.errors import PreconditionError

__all__ = ["hold_file", "private_folder", "replace_file"]


def private_folder(path: Path, *, keep_mode: bool = False) -> Path:
    """Make the folder, parents included, with mode 0700, and check that it is ours.

    One that exists gets that mode too, unless `keep_mode`: a home may be a folder that its
    owner uses for other things, whose own folders in it are private all the same.

    Raises:
        PreconditionError: It is a link, no folder, another user's, or cannot be made.
    """
    try:
        # Path.mkdir would make the parents for everybody.
        for folder in reversed((path, *path.parents)):
            folder.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise PreconditionError(
            f"the folder {path} cannot be used: {error.strerror or error}",
            reason="FOLDER_UNUSABLE",
            fix="free the path, or choose another home with MUNIMENT_HOME",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PreconditionError(
            f"{path} is not a folder of this user",
            reason="FOLDER_NOT_OURS",
            fix="remove it, or choose another home with MUNIMENT_HOME",
        )
    if stat.S_IMODE(found.st_mode) != 0o700 and not keep_mode:
        path.chmod(0o700)
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Put the content in place of the file, whole or not at all, with mode 0600."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def hold_file(path: Path) -> Iterator[None]:
    """Hold the file, which stays, until the block or the process ends.

    Raises:
        BlockingIOError: Somebody else holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
