"""Named fault points: places where a test may kill the process.

A point costs one attribute test unless MUNIMENT_FAULTS names a folder. There, a file called
like the point arms it: its text is the visit on which the process dies (by SIGKILL, so that
nothing is cleaned up), counted over all processes of the home. The file is removed first, so
a restarted service passes, and a file that is left over shows a point that was never visited.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

__all__ = ["VARIABLE", "reach"]

VARIABLE = "MUNIMENT_FAULTS"

_folder = os.environ.get(VARIABLE)


def reach(point: str) -> None:
    """Pass the named point, or die there where a test has armed it."""
    if _folder is None:
        return
    armed = Path(_folder) / point
    try:
        visits_left = int(armed.read_text() or "1")
    except FileNotFoundError:
        return
    if visits_left > 1:
        armed.write_text(str(visits_left - 1))
        return
    armed.unlink()
    os.kill(os.getpid(), signal.SIGKILL)
