"""What the disk and LMDB refuse, in words for people."""

from __future__ import annotations

from pathlib import Path

import lmdb

from muniment.kit.errors import LimitError, MunimentError, PreconditionError

__all__ = ["require_whole", "unreadable", "write_error"]

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

    Raises:
        lmdb.Error: It ends long before its last page.
    """
    data = path / "data.mdb" if path.is_dir() else path
    page_bytes = environment.stat()["psize"]
    used = (environment.info()["last_pgno"] + 1 - _UNWRITTEN_PAGES) * page_bytes
    if data.stat().st_size < used:
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
