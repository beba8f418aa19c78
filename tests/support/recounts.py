"""A recounter in virtual time, and somebody who counts by a plain rule in the model's place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from muniment.kit.errors import MunimentError
from muniment.kit.store.bell import CommitBell
from muniment.kit.store.jobs import Job
from muniment.memory.counts import Serving
from muniment.memory.episodes import list_episodes
from muniment.memory.recounting import Counted, Recounter
from muniment.v1 import memory_pb2
from tests.support.bare_memory import BareMemory, a_bare_memory
from tests.support.stepped_loop import SteppedLoop
from tests.support.virtual_time import at

__all__ = ["RULES", "Model", "Recounted", "a_counted_memory"]

T = TypeVar("T")

RULES: dict[str, Callable[[str], int]] = {
    "words-1": lambda text: len(text.split()),
    "letters-1": len,
    "nothing-1": lambda text: 0,
}
"""By tokenizer how it counts."""


class _InlineLoop(SteppedLoop):
    """Commits and follows each job before `submit` returns."""

    def submit(self, job: Job) -> None:
        super().submit(job)
        self.stop()


class _InlineExecutor(Executor):
    """Runs what it gets at once: in virtual time nobody may wait for a thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class Model:
    """Counts by the rule of the tokenizer that serves, and remembers what it was asked."""

    tokenizer: str = "words-1"
    trouble: MunimentError | None = None
    """What it raises, when it does."""
    takes: float = 0.0
    """Seconds for a call with texts."""
    deadly: str = ""
    """Whoever sends a text that has this gets `deadly_error`."""
    deadly_error: MunimentError | None = None
    meanwhile: Callable[[], object] = lambda: None
    """Called when the texts are counted and not yet answered."""
    calls: list[list[str]] = field(default_factory=list)
    """The texts of each call that had some."""
    asked: list[float] = field(default_factory=list)
    """When it was asked who serves."""

    async def __call__(self, texts: Sequence[str]) -> Counted:
        """Count the texts."""
        loop = asyncio.get_running_loop()
        if texts:
            self.calls.append(list(texts))
            await at(loop.time() + self.takes)
        else:
            self.asked.append(loop.time())
        if self.trouble is not None:
            raise self.trouble
        if self.deadly_error is not None and any(self.deadly in text for text in texts):
            raise self.deadly_error
        counts = [RULES[self.tokenizer](text) for text in texts]
        tokenizer = self.tokenizer
        if texts:
            self.meanwhile()
        return Counted(counts, tokenizer)

    @property
    def texts(self) -> list[str]:
        """All texts that it was sent, in order."""
        return [text for call in self.calls for text in call]


@dataclass(frozen=True)
class Recounted:
    """A memory whose tokens are counted by a model."""

    memory: BareMemory
    model: Model
    bell: CommitBell = field(default_factory=CommitBell)
    serving: Serving = field(default_factory=Serving)

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """Count in the background until the block ends."""
        recounter = Recounter(
            self.memory.store,
            self.bell,
            self.serving,
            self.model,
            _InlineExecutor(),
            self.memory.clock,
        )
        task = asyncio.create_task(recounter.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def count(self, seconds: float = 5.0) -> None:
        """Let the recounter run for so long."""
        async with self.counting():
            await self.after(seconds)

    async def after(self, seconds: float) -> None:
        """Let so much time pass."""
        await at(asyncio.get_running_loop().time() + seconds)

    def episodes(self, project_id: str) -> list[memory_pb2.Episode]:
        """The project's episodes, as they are shown."""
        with self.memory.store.read() as reader:
            counts = self.serving.counts(reader)
            found = list_episodes(reader, project_id, None, 0, 100_000).episodes
            return [counts.show(one) for one in found]

    def counts(self, project_id: str) -> list[tuple[int, str, bool]]:
        """What is shown of the project's episodes: count, tokenizer, and whether it is exact."""
        return [_told(one.tokens) for one in self.episodes(project_id)]

    def costs(self, project_id: str, session_id: str | None = None) -> list[tuple[int, str, bool]]:
        """The same of the project's pins."""
        with self.memory.store.read() as reader:
            counts = self.serving.counts(reader)
            found = self.memory.pins(project_id, session_id)
            return [_told(counts.show_cost(one).token_cost) for one in found]


def _told(tokens: memory_pb2.TokenCount) -> tuple[int, str, bool]:
    return tokens.count_tokens, tokens.tokenizer, tokens.exact


@contextmanager
def a_counted_memory(
    folder: Path, model: Model | None = None, *, sealed: bool = False
) -> Iterator[Recounted]:
    """The memory in that folder, for a loop of virtual time."""
    with a_bare_memory(folder, sealed=sealed, loop=_InlineLoop()) as memory:
        recounted = Recounted(memory, model or Model())
        memory.store.follow(recounted.bell)
        yield recounted
