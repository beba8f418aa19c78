"""The order of writes: one count over all of a tenant's records."""

from __future__ import annotations

import hashlib

from muniment.kit.store import Writer
from muniment.memory.records.schema import ENTITY_ORDER

__all__ = ["counted_down", "next_order", "scope_of"]

_LARGEST = (1 << 64) - 1

_LONGEST_SCOPE_BYTES = 200
"""Zeros in it are doubled in a key, which then is still below what a store shortens."""


def next_order(writer: Writer) -> int:
    """The place of a new write, greater than all before."""
    return writer.next_number(ENTITY_ORDER)


def counted_down(order: int) -> int:
    """A key that sorts the newest first; of such a key the order."""
    return _LARGEST - order


def scope_of(category: str | None) -> str:
    """The scope in which a category's entities, or all of them, are in order.

    Of a long category a digest: what is behind its order in a key has to stay whole.
    """
    if category is None:
        return "*"
    raw = category.encode()
    long = len(raw) > _LONGEST_SCOPE_BYTES
    return f"#{hashlib.sha256(raw).hexdigest()}" if long else f"={category}"
