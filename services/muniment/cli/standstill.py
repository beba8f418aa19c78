"""Stops the services for work on their stores, and keeps harnesses from starting them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from muniment.cli.house import start_services, stop_services
from muniment.kit.errors import UnavailableError
from muniment.kit.paths import Home
from muniment.kit.stores import STORES, hold_stores
from muniment.kit.supervise import kept_down

__all__ = ["Standstill", "standstill"]

_ATTEMPTS = 3
"""A harness may start the services between their stop and our lock."""


@dataclass
class Standstill:
    """What is to happen after it."""

    start_after: bool
    """Whether the services are started then; at first, whether they ran."""


@contextmanager
def standstill(home: Home) -> Iterator[Standstill]:
    """Have the home's stores to oneself for the block.

    Raises:
        UnavailableError: Harnesses start the services again and again, or somebody uses a store.
        MunimentError: The services cannot be stopped, or started again.
    """
    told = Standstill(start_after=False)
    try:
        with ExitStack() as alone:
            for attempt in range(1, _ATTEMPTS + 1):
                told.start_after |= stop_services(home)
                try:
                    alone.enter_context(kept_down(home))
                    break
                except UnavailableError:
                    if attempt == _ATTEMPTS:
                        raise
            alone.enter_context(hold_stores(home, STORES))
            yield told
    finally:
        if told.start_after:
            start_services(home)
