"""Watching a slot after a restore, to see what the restore was worth.

While the next request runs, the server tells how much of its prompt it did not evaluate. A request
that comes and goes between two looks is not seen, and then the worth is not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import MunimentError
from muniment.slots.backend import Backend
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

__all__ = ["RestoreWatch"]

_WATCH_SECONDS = 1800.0
_QUICK_SECONDS, _QUICK_PAUSE_SECONDS = 10.0, 0.02
"""A warm turn comes right after its restore, and may be short."""
_PAUSE_SECONDS = 0.25

_log = structlog.get_logger()

_Measured = Callable[[slots_pb2.RestoreWorth], Awaitable[None]]


class RestoreWatch:
    """One watch a slot; a new restore ends the one before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}

    def begin(self, backend: Backend, restored: ToldSlot, tokens: int, measured: _Measured) -> None:
        """Watch the slot from the moment that `restored` tells of; `measured` takes the worth."""
        key = (backend.address.name, restored.slot_id)
        self.end(*key)
        watch = self._watch(backend, restored, tokens, measured)
        task = asyncio.create_task(watch)
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._drop(key, done))

    def end(self, server: str, slot_id: int) -> None:
        """Watch that slot no longer: something else was done to it."""
        task = self._tasks.pop((server, slot_id), None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Watch no slot any more."""
        for key in list(self._tasks):
            self.end(*key)

    def _drop(self, key: tuple[str, int], done: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is done:
            del self._tasks[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.error("a restore is not watched", exc_info=error)

    async def _watch(
        self, backend: Backend, restored: ToldSlot, tokens: int, measured: _Measured
    ) -> None:
        began = self._clock.monotonic()
        running: ToldSlot | None = None
        while (since := self._clock.monotonic() - began) < _WATCH_SECONDS:
            await asyncio.sleep(_QUICK_PAUSE_SECONDS if since < _QUICK_SECONDS else _PAUSE_SECONDS)
            try:
                told = await backend.slot(restored.slot_id)
            except MunimentError:
                return  # The server went away, and the slot's content with it.
            if told is None:
                return
            is_first = running is None or running.task == told.task
            if told.is_busy and is_first:
                # Both are nil until it has looked at the prompt, which it takes in portions.
                if told.reused_tokens or told.evaluated_tokens:
                    running = told
                if running is None or not told.generated_tokens:
                    continue
            if running is not None:
                await measured(self._worth(running, tokens))
                return
            if (told.task, told.prompt_tokens) != (restored.task, restored.prompt_tokens):
                _log.info("a restore's worth was not seen", server=backend.address.name)
                return

    def _worth(self, told: ToldSlot, tokens: int) -> slots_pb2.RestoreWorth:
        """What the request was seen to reuse when it was last seen with its prompt."""
        reused = told.reused_tokens or 0
        whole = (told.prompt_tokens or 0) - (told.generated_tokens or 0)
        return slots_pb2.RestoreWorth(
            restored_tokens=tokens,
            prompt_tokens=max(reused + (told.evaluated_tokens or 0), whole),
            reused_tokens=reused,
            source=slots_pb2.WORTH_SOURCE_NEXT_REQUEST,
            measured_at=timestamp(self._clock),
        )
