"""Writing to the service's store from its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from muniment.kit.store import Store, Writer

__all__ = ["write"]

T = TypeVar("T")

_WRITTEN_BY = "slots"


async def write(store: Store, change: Callable[[Writer], T]) -> T:
    """Make the change; on return it is on disk."""
    return await asyncio.wrap_future(store.write(change, written_by=_WRITTEN_BY))
