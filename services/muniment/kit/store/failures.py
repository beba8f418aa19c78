"""What the disk and LMDB refuse, in words for people."""

from __future__ import annotations

import os
from pathlib import Path

import lmdb
import structlog

from muniment.kit.errors import LimitError, MunimentError, PreconditionError

__all__ = ["require_whole", "unreadable", "write_error"]

_log = structlog.get_logger()

_UNWRITTEN_PAGES = 256
"""LMDB may give out pages at the end of the file that it never writes."""


def unreadable(path: Path, error: lmdb.Error) -> MunimentError:
    """The error for a store that cannot be opened."""
    return PreconditionError(
        f"the store in {path} cannot be opened: {error}",
        reason="STORE_UNREADABLE",
        fix="stop any other process of this home with `muniment down`, and check the disk",
    )


def require_whole(path: Path, environment: lmdb.Environment) -> None:
    """Refuse a file that was cut short: to read what is missing would kill the process (SIGBUS).

    Where it lacks so little that it may be whole, it is made as long as it says that it is: what
    was cut off is found by whoever reads it, as pages that are empty.

    Raises:
        lmdb.Error: It ends long before its last page.
    """
    data = path / "data.mdb" if path.is_dir() else path
    page_bytes = environment.stat()["psize"]
    pages, size = environment.info()["last_pgno"] + 1, data.stat().st_size
    if size >= pages * page_bytes:
        return
    try:
        if size >= (pages - _UNWRITTEN_PAGES) * page_bytes:
            os.truncate(data, pages * page_bytes)
            return
    except OSError:
        _log.warning("a store's file is shorter than it says, and is left so", path=str(data))
        return
    raise lmdb.CorruptedError(f"{data} ends before what was written to it; it was cut short")


def write_error(error: Exception, limit_bytes: int) -> Exception:
    """What to tell the writer whose transaction ended so; the error itself, where it is its own."""
    if isinstance(error, lmdb.MapFullError):
        return LimitError(
            f"the store has reached its limit of {limit_bytes} bytes",
            reason="STORE_FULL",
            field="memory_map_bytes",
            fix="raise the setting and restart the service; nothing of this was kept",
        )
    if isinstance(error, (lmdb.Error, OSError)):
        return LimitError(
            f"the store could not be written: {error}",
            reason="STORE_WRITE_FAILED",
            fix="check the disk's space and health; nothing of this was kept",
        )
    return error
