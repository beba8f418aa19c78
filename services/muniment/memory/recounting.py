"""Counts episodes and pins anew by the serving model's tokenizer, in the background.

Nobody who commits waits for it, and it asks for nothing that is not there: where no model serves,
it looks again from time to time, and estimates stay what is shown. When another model serves, it
begins anew; what the one before counted stays, under its name, until it is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock
from muniment.kit.errors import (
    InternalError,
    MunimentError,
    PreconditionError,
    TimedOutError,
    UnavailableError,
)
from muniment.kit.store import Reader, Store, Writer
from muniment.kit.store.bell import CommitBell
from muniment.memory.counts import Progress, Serving, keep_costs, keep_counts
from muniment.memory.uncounted import Portion, Uncounted

__all__ = ["Counted", "Recounter"]

_LOOK_SECONDS = 15.0
"""How long it is at most before it is asked again which tokenizer serves."""

_GATHER_SECONDS = 1.0
"""How long after a commit others are waited for, to be counted with it."""

_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 2.0, 30.0
"""How long a model that does not serve is left alone; twice as long each time."""

_LEAST_REST_SECONDS = 0.05
"""Between two calls it rests as long as the first took, and at least so long."""

_WRITTEN_BY = "recount"

_AWAY = (InternalError, PreconditionError, TimedOutError, UnavailableError)
"""Errors that say that nobody counts at present."""

_SLEEPS = "LLAMA_SLEEPING"
"""Why a model does not count that is served all the same."""

_log = structlog.get_logger()
T = TypeVar("T")


@dataclass(frozen=True)
class Counted:
    """What the serving model's own tokenizer counts, in the order of the texts."""

    counts: Sequence[int]
    tokenizer: str


@dataclass
class Recounter:
    """Keeps the counts of a store those of the model that serves."""

    store: Store
    bell: CommitBell
    """Rings after each commit."""
    serving: Serving
    count: Callable[[Sequence[str]], Awaitable[Counted]]
    """Counts exactly, or raises a MunimentError. Without texts it tells which tokenizer serves."""
    readers: Executor
    """Threads for what reads."""
    clock: Clock
    _rung: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _seen: int = field(default=-1, init=False)
    """The store's position when it was last looked at: what is written here does not change it."""
    _uncounted: Uncounted | None = field(default=None, init=False)
    _retry_seconds: float = field(default=_FIRST_RETRY_SECONDS, init=False)
    _said: str = field(default="", init=False)

    async def run(self) -> None:
        """Count until cancelled."""
        listening = asyncio.create_task(self._listen(), name="recount-bell")
        try:
            while True:
                await self._rest(await self._turn())
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening

    async def _listen(self) -> None:
        async for _ in self.bell.rings():
            if self.store.position != self._seen:
                self._rung.set()

    async def _rest(self, until_retry: float | None) -> None:
        """Wait for the time of the next try, or for a commit or the time of the next look."""
        if until_retry is not None:
            await asyncio.sleep(until_retry)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._rung.wait(), _LOOK_SECONDS)
            await asyncio.sleep(_GATHER_SECONDS)

    async def _turn(self) -> float | None:
        """Count all that is to be counted. In how many seconds to try again, where that failed."""
        self._rung.clear()
        self._seen = self.store.position
        try:
            await self._count_all((await self.count(())).tokenizer)
        except MunimentError as error:
            if isinstance(error, _AWAY) and error.reason != _SLEEPS:
                self.serving.progress = None
            told = str(error)
            self._say(error.reason, lambda: _log.info("tokens are not counted", why=told))
        except Exception as error:
            self.serving.progress = None
            defect = error
            self._say(repr(error), lambda: _log.error("tokens are not counted", exc_info=defect))
        else:
            self._retry_seconds = _FIRST_RETRY_SECONDS
            return None
        seconds = self._retry_seconds
        self._retry_seconds = min(2 * seconds, _LONGEST_RETRY_SECONDS)
        return seconds

    def _say(self, what: str, log: Callable[[], object]) -> None:
        """Log it, once for each change of what there is to say."""
        if what != self._said:
            self._said = what
            log()

    async def _count_all(self, tokenizer: str) -> None:
        uncounted = self._uncounted
        if uncounted is None or (uncounted.tokenizer, uncounted.incarnation) != (
            tokenizer,
            self.store.incarnation,
        ):
            uncounted = self._uncounted = Uncounted(tokenizer, self.store.incarnation)
        self._say(
            f"counts {tokenizer}", lambda: _log.info("tokens are counted", tokenizer=tokenizer)
        )
        while (portion := await self._read(uncounted.next)) is not None:
            self._tell(uncounted)
            if portion.texts:
                began = self.clock.monotonic()
                if not await self._count_portion(uncounted, portion):
                    return
                self._tell(uncounted)
                taken = self.clock.monotonic() - began
                await asyncio.sleep(max(taken, _LEAST_REST_SECONDS))
        self._tell(uncounted)

    async def _count_portion(self, uncounted: Uncounted, portion: Portion) -> bool:
        """Count and keep the texts. False where another model serves by now.

        Raises:
            MunimentError: Nobody counts at present, or the store cannot be written.
        """
        try:
            found = await self.count(portion.texts)
        except MunimentError as error:
            # A text may be what the model's server does not survive.
            uncounted.failed(portion)
            if isinstance(error, _AWAY):
                raise
            return True
        faults.reach("memory.before_counts")

        def keep(writer: Writer) -> int:
            if portion.pins:
                keep_costs(
                    writer, found.tokenizer, list(zip(portion.pins, found.counts, strict=True))
                )
                return 0
            counts = dict(zip(portion.seqs, found.counts, strict=True))
            return keep_counts(writer, found.tokenizer, counts)

        added = await asyncio.wrap_future(self.store.write(keep, written_by=_WRITTEN_BY))
        if found.tokenizer != uncounted.tokenizer:
            self.serving.progress = None
            self._rung.set()
            return False
        uncounted.counted += added
        uncounted.done(portion)
        return True

    def _tell(self, uncounted: Uncounted) -> None:
        self.serving.progress = Progress(
            uncounted.tokenizer, uncounted.counted, uncounted.uncountable
        )

    async def _read(self, look: Callable[[Reader], T]) -> T:
        def run() -> T:
            with self.store.read() as reader:
                return look(reader)

        return await asyncio.get_running_loop().run_in_executor(self.readers, run)
