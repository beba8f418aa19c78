"""How far long work is, told while it goes on."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Report"]

Report = Callable[[str, int, int], None]
"""Takes the step, for people; what is done; and of how much, 0 where that is not known."""
