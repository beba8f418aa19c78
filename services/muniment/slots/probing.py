"""Finding out what a server can do, while nobody has used any of its slots.

Before it takes one it has all of them saved: a restored slot looks like an unused one, and only
that tells what is in it. Then it evaluates a prompt of ours, turns back to its middle, and saves,
erases and restores the slot; what was reused each time is `timings.cache_n` of the server's answer.
A model whose attention slides may show what it does only with a prompt longer than its window, so
the length is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from muniment.kit import faults
from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import MunimentError, PreconditionError
from muniment.kit.progress import Report
from muniment.kit.randomness import Randomness
from muniment.slots.answers import count_in
from muniment.slots.backend import Backend, Found
from muniment.slots.failures import NotSupported, cannot_be_sealed, slot_busy
from muniment.slots.knowing import Knowledge
from muniment.slots.places import Places
from muniment.slots.probe_files import ProbeFiles
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

__all__ = ["Prober"]

SHORT_WORDS, LONG_WORDS = 100, 1200
"""Words of the prompt: when it is done unasked, and when somebody asks for it."""

_STEPS = 6
_SLACK_TOKENS = 8
"""Tokens next to a cut that a server may evaluate again, and still be said to reuse the rest."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class Prober:
    """Probes servers one after another, and keeps what it finds."""

    clock: Clock
    randomness: Randomness
    knowledge: Knowledge
    places: Callable[[Backend], Places]
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _given_up: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """The run of each server, by its name, in which nothing is probed unasked any more."""

    async def probe(self, backend: Backend, words: int, report: Report) -> None:
        """Probe the server with a prompt of so many words.

        Raises:
            PreconditionError: No slot is spare, or one is busy.
            MunimentError: The server is not ready, or went away.
        """
        async with self._turn:
            await self._probe(backend, words, report)

    async def probe_if_idle(self, backend: Backend) -> None:
        """Probe it shortly where that is due and disturbs nobody."""
        if self._turn.locked():
            return
        async with self._turn:
            run = await self._due(backend)
            if run is None:
                return
            name = backend.address.name
            try:
                await self._probe(backend, SHORT_WORDS, lambda step, done, total: None)
                _log.info("probed", server=name)
            except MunimentError as error:
                # A slot that is busy has its end; one that was used stays used.
                if error.reason != "SLOT_BUSY":
                    self._given_up[name] = run
                _log.info("not probed", server=name, why=error.message)

    async def sweep(self, backend: Backend) -> None:
        """Remove what a probe left that a crash cut short, or that the server wrote too late."""
        if not self._turn.locked():
            async with self._turn:
                await asyncio.to_thread((await self._files(backend)).sweep)

    async def _due(self, backend: Backend) -> tuple[bytes, int] | None:
        """The server's run, where it is to be probed unasked."""
        name = backend.address.name
        try:
            found = await backend.ready()
            known = await self.knowledge.of(name, found.subject)
        except MunimentError as error:
            _log.debug("not probed", server=name, why=error.message)
            return None
        run = found.subject, backend.runs_seen
        if known.is_probed or self._given_up.get(name) == run:
            return None
        # One that nobody named is somebody else's, for all we know; and slots of a run that is
        # older than this service may hold what was restored into them before.
        return run if backend.address.is_configured and backend.runs_seen else None

    async def _probe(self, backend: Backend, words: int, report: Report) -> None:
        found = await backend.ready()
        await asyncio.to_thread(self._require_sealable, backend)
        _spare(backend, await backend.slots())
        # A word of the prompt has some tokens, and a slot may be short.
        words = min(words, int(found.model.slot_context_tokens // 12))
        report("looking whether anything is in a slot", 0, _STEPS)
        async with _all_turns(backend, found):
            # Somebody may have had his turn in between, and have filled one.
            found = await backend.ready()
            told = await backend.slots()
            chosen = _spare(backend, told)
            trial = _Trial(backend, chosen.slot_id, await self._files(backend), report)
            async with trial.files:
                prompt = _Prompt.of(words, self.randomness)
                saves = all([await trial.require_empty(one.slot_id) for one in told])
                capability, figures = await trial.run(prompt, saves=saves)
        worth = None
        if figures is not None:
            worth = slots_pb2.RestoreWorth(
                restored_tokens=figures.restored,
                prompt_tokens=figures.prompt,
                reused_tokens=figures.reused,
                source=slots_pb2.WORTH_SOURCE_PROBE,
                measured_at=timestamp(self.clock),
            )
        await self.knowledge.keep_probe(backend.address.name, found.subject, capability, worth)

    def _require_sealable(self, backend: Backend) -> None:
        """Let nothing be written in plain that would stay: a slot may hold what was restored.

        Raises:
            PreconditionError: The home is sealed, and the server's files are out of reach.
        """
        lack = self.places(backend).out_of_reach() if self.knowledge.is_sealed else None
        if lack is not None:
            setting = backend.address.folder_setting
            raise cannot_be_sealed(
                f"`{setting}` {lack}",
                f"set `{setting}` to the --slot-save-path of llama-server, then run"
                " `muniment restart slots`",
            )

    async def _files(self, backend: Backend) -> ProbeFiles:
        home = await asyncio.to_thread(self.knowledge.home)
        return ProbeFiles(self.places(backend), home, self.randomness)


@dataclass(frozen=True)
class _Figures:
    """Tokens that were restored, those of the next prompt, and what was reused of these."""

    restored: int
    prompt: int
    reused: int


@dataclass(frozen=True)
class _Trial:
    """One probe of one slot, looked at between all steps: who begins to use it shall have it."""

    backend: Backend
    slot_id: int
    files: ProbeFiles
    report: Report

    async def run(
        self, prompt: _Prompt, *, saves: bool
    ) -> tuple[slots_pb2.Capability, _Figures | None]:
        """What is seen of it; `saves` says whether the server does."""
        server = self.backend.server
        self.report("evaluating a prompt", 1, _STEPS)
        _spare(self.backend, await self.backend.slots())
        first = await server.complete(self.slot_id, prompt.whole)
        own = await self._require_own(first)
        saved, name = 0, self.files.next_name()
        if saves:
            saved = count_in(await server.act(self.slot_id, "save", name), "n_saved")
            await self._require_same(own)
        self.report("turning back to its middle", 2, _STEPS)
        turned = await server.complete(self.slot_id, prompt.other_half)
        own = await self._require_own(turned)
        half = (await self.backend.tokens.count_prompt(prompt.half)).counts[0]
        capability = _prefix_reuse(_evaluated(first), half, turned)
        await self._require_same(own)
        if not saved:
            return capability, None
        self.report("restoring it", 3, _STEPS)
        await server.act(self.slot_id, "erase")
        await self._require_same(replace(own, prompt_tokens=0))
        faults.reach("slots.before_probe_restore")
        await server.act(self.slot_id, "restore", name)
        await self._require_same(replace(own, prompt_tokens=saved))
        self.report("continuing it", 4, _STEPS)
        after = await server.complete(self.slot_id, prompt.longer)
        self.report("cleaning up", 5, _STEPS)
        own = await self._require_own(after)
        await server.act(self.slot_id, "erase")
        left = replace(own, prompt_tokens=0)
        await self._require_same(left)
        self.backend.book.free(left)
        return capability, _Figures(saved, _evaluated(after), count_in(after, "cache_n"))

    async def require_empty(self, slot_id: int) -> bool:
        """Have the slot saved, which tells what is in it, however it came there; if it can be.

        Raises:
            PreconditionError: Something is in it.
        """
        try:
            answer = await self.backend.server.act(slot_id, "save", self.files.first_name)
        except NotSupported:
            return False  # Then nothing can have been restored, and what was asked is told.
        await asyncio.to_thread(self.files.look)
        if answer.get("n_saved") != 0:
            raise _taken(f"something is in slot {slot_id} of the inference server")
        return True

    async def _require_own(self, last: dict[str, Any]) -> ToldSlot:
        """Make sure that the slot has our last prompt, and nobody's after it.

        Raises:
            PreconditionError: It holds something else.
        """
        told = await self._look()
        own = _evaluated(last) + count_in(last, "predicted_n")
        if told is None or told.is_busy or told.task is None or told.prompt_tokens is None:
            raise self._in_use()
        if abs(told.prompt_tokens - own) > 1:
            raise self._in_use()
        return told

    async def _require_same(self, own: ToldSlot) -> None:
        """Make sure that nobody asked anything of the slot since.

        Raises:
            PreconditionError: Somebody did.
        """
        told = await self._look()
        if told is None or told.is_busy:
            raise self._in_use()
        if (told.task, told.prompt_tokens) != (own.task, own.prompt_tokens):
            raise self._in_use()

    async def _look(self) -> ToldSlot | None:
        """What is told of the slot, while all others are as unused as they were.

        Raises:
            PreconditionError: Another one was taken into use.
        """
        told = {one.slot_id: one for one in await self.backend.slots()}
        own = told.pop(self.slot_id, None)
        if not all(map(self.backend.book.is_unused, told.values())):
            raise self._in_use()
        return own

    def _in_use(self) -> PreconditionError:
        return _taken("the inference server was taken into use while it was probed")


@dataclass(frozen=True)
class _Prompt:
    """A prompt, one that goes on from it, and one that leaves it in the middle."""

    whole: str
    longer: str
    half: str
    other_half: str

    @classmethod
    def of(cls, words: int, randomness: Randomness) -> _Prompt:
        # Drawn, so that no server has it in a cache.
        drawn = [randomness.token(2).hex() for _ in range(max(words, 4))]
        whole = " ".join(drawn)
        half = " ".join(drawn[: len(drawn) // 2])
        return cls(whole, f"{whole} and so on", half, f"{half} but otherwise")


@asynccontextmanager
async def _all_turns(backend: Backend, found: Found) -> AsyncIterator[None]:
    """Hold the turns of all slots; who has one takes no second, so that none waits in a ring."""
    async with AsyncExitStack() as stack:
        for slot_id in range(found.model.slots):
            await stack.enter_async_context(backend.turn(slot_id))
        yield


def _spare(backend: Backend, told: list[ToldSlot]) -> ToldSlot:
    """A slot of a server of which nobody has used any since it started.

    Slots may share one cache (`--kv-unified`), and do by default: a request on one then clears
    those that are idle.
    """
    busy = [one.slot_id for one in told if one.is_busy]
    if busy:
        raise slot_busy(busy[0])
    used = [one for one in told if not backend.book.is_unused(one)]
    if used or not told:
        which = f"slot {used[0].slot_id}" if used else "a slot"
        raise _taken(
            f"of {which} of the inference server it cannot be told that nobody has used it"
        )
    # The last one is the least likely to be named by anybody.
    return told[-1]


def _taken(what: str) -> PreconditionError:
    return PreconditionError(
        f"{what}, and a probe may take away what a slot holds",
        reason="SLOT_NONE_SPARE",
        fix="probe it right after its start, before anything is asked of it",
    )


def _evaluated(timings: dict[str, Any]) -> int:
    """Tokens of the whole prompt."""
    return count_in(timings, "cache_n") + count_in(timings, "prompt_n")


def _prefix_reuse(whole: int, half: int, turned: dict[str, Any]) -> slots_pb2.Capability:
    reused = count_in(turned, "cache_n")
    if reused >= half - _SLACK_TOKENS and reused > 0:
        standing = slots_pb2.STANDING_YES
    else:
        standing = slots_pb2.STANDING_NO
    return slots_pb2.Capability(
        kind=slots_pb2.CAPABILITY_KIND_PREFIX_REUSE,
        standing=standing,
        detail=(
            f"{reused} of {half} tokens were reused when a prompt of {whole} was left after these"
        ),
        fix=None
        if standing == slots_pb2.STANDING_YES
        else "start llama-server with --ctx-checkpoints 32 or --swa-full",
    )
