"""What the disk and LMDB refuse, in words for people."""

from __future__ import annotations

from pathlib import Path

import lmdb

from muniment.kit.errors import LimitError, MunimentError, PreconditionError

__all__ = ["unreadable", "write_error"]


def unreadable(path: Path, error: lmdb.Error) -> MunimentError:
    """The error for a store that cannot be opened."""
    return PreconditionError(
        f"the store in {path} cannot be opened: {error}",
        reason="STORE_UNREADABLE",
        fix="stop any other process of this home with `muniment down`, and check the disk",
    )


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
