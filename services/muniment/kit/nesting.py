"""How deep JSON values are nested, found without recursion."""

from __future__ import annotations

from typing import Any

__all__ = ["is_deeper"]


def is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in the value more than so many levels deep."""
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
