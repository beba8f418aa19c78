"""Files and folders that only their owner can read; replacement that survives a crash."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from muniment.kit.errors import PreconditionError

__all__ = [
    "copy_file",
    "file_digest",
    "hold_file",
    "make_file",
    "private_folder",
    "replace_file",
    "replacing_file",
    "sync_file",
    "sync_folder",
]

_BLOCK_BYTES = 1024 * 1024


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
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in the folder durable: what was made, renamed or removed in it."""
    sync_file(path)


def sync_file(path: Path) -> None:
    """Make what others have written into the file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold_file(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the file, which stays, until the block or the process ends.

    Raises:
        BlockingIOError: Somebody else holds it, and that is not to be waited for.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


@contextmanager
def make_file(path: Path) -> Iterator[BinaryIO]:
    """A new file with mode 0600, durable after the block and gone where that fails.

    Raises:
        FileExistsError: There is one already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
    """What takes the file's place after the block, with mode 0600; as `replace_file`, in parts."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with make_file(temporary) as file:
        yield file
        # Still in the block, so that it is removed where this fails.
        file.flush()
        os.fsync(file.fileno())
        temporary.replace(path)
    sync_folder(path.parent)


def copy_file(source: Path, target: Path, report: Callable[[int], None]) -> bytes:
    """Copy into a new file, and report the bytes that are done. The content's SHA-256."""
    digest = hashlib.sha256()
    with make_file(target) as file:
        for block, done in _blocks(source):
            digest.update(block)
            file.write(block)
            report(done)
    return digest.digest()


def file_digest(path: Path, report: Callable[[int], None]) -> bytes:
    """The SHA-256 of the file; reports the bytes that are done."""
    digest = hashlib.sha256()
    for block, done in _blocks(path):
        digest.update(block)
        report(done)
    return digest.digest()


def _blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    with path.open("rb") as file:
        done = 0
        while block := file.read(_BLOCK_BYTES):
            done += len(block)
            yield block, done
