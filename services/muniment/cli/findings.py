"""What a check of `muniment doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    check: str
    level: Literal["ok", "warning", "problem"]
    message: str
    fix: str | None = None
    """What to do; None where nothing is wrong."""
