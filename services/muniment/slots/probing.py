"""Finding out what a server can do, on a slot that nobody uses.

It evaluates a prompt of ours, turns back to its middle, and saves, erases and restores the slot;
what was reused each time is `timings.cache_n` of the server's answer. A model whose attention
slides may show what it does only with a prompt longer than its window, so the length is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from muniment.kit.clock import Clock, timestamp
from muniment.kit.errors import MunimentError, PreconditionError
from muniment.kit.progress import Report
from muniment.kit.randomness import Randomness
from muniment.slots.answers import count_in
from muniment.slots.backend import Backend
from muniment.slots.failures import NotSupported, Refused
from muniment.slots.knowing import Knowledge
from muniment.slots.places import Places
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

__all__ = ["Prober"]

SHORT_WORDS, LONG_WORDS = 100, 1200
"""Words of the prompt: when it is done unasked, and when somebody asks for it."""

_FILE = "muniment-probe.slot"
_STEPS = 5
_SLACK_TOKENS = 8
"""Tokens next to a cut that a server may evaluate again, and still be said to reuse the rest."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class Prober:
    """Probes servers, and keeps what it finds."""

    clock: Clock
    randomness: Randomness
    knowledge: Knowledge
    places: Callable[[Backend], Places]

    async def probe(self, backend: Backend, words: int, report: Report) -> None:
        """Probe the server with a prompt of so many words.

        Raises:
            PreconditionError: No slot is spare, or one is busy.
            MunimentError: The server is not ready, or went away.
        """
        found = await backend.ready()
        spare = _spare(await backend.slots())
        # A word of the prompt has some tokens, and a slot may be short.
        words = min(words, int(found.model.slot_context_tokens // 12))
        async with backend.turn(spare.slot_id):
            prompt = _Prompt.of(words, self.randomness)
            capability, worth = await self._try(backend, spare.slot_id, prompt, report)
        await self.knowledge.keep_probe(backend.address.name, found.subject, capability, worth)

    async def probe_if_idle(self, backend: Backend) -> None:
        """Probe it shortly where that is due and disturbs nobody."""
        try:
            found = await backend.ready()
            known = await self.knowledge.of(backend.address.name, found.subject)
            # One that nobody named is somebody else's, for all we know.
            if not known.is_probed and backend.address.is_configured:
                await self.probe(backend, SHORT_WORDS, lambda step, done, total: None)
                _log.info("probed", server=backend.address.name)
        except MunimentError as error:
            _log.debug("not probed", server=backend.address.name, why=error.message)

    async def _try(
        self, backend: Backend, slot_id: int, prompt: _Prompt, report: Report
    ) -> tuple[slots_pb2.Capability, slots_pb2.RestoreWorth | None]:
        server = backend.server
        report("evaluating a prompt", 0, _STEPS)
        whole = _evaluated(await server.complete(slot_id, prompt.whole))
        saved = await self._save(backend, slot_id)
        report("turning back to its middle", 1, _STEPS)
        turned = await server.complete(slot_id, prompt.other_half)
        half = (await backend.tokens.count_prompt(prompt.half)).counts[0]
        capability = _prefix_reuse(whole, half, turned)
        if not saved:
            return capability, None
        try:
            report("restoring it", 2, _STEPS)
            await _require_own(backend, slot_id, turned)
            await server.act(slot_id, "erase")
            await server.act(slot_id, "restore", _FILE)
            report("continuing it", 3, _STEPS)
            after = await server.complete(slot_id, prompt.longer)
            report("cleaning up", 4, _STEPS)
            await _require_own(backend, slot_id, after)
            await server.act(slot_id, "erase")
        finally:
            written = self.places(backend).written(_FILE)
            if written is not None:
                written.unlink(missing_ok=True)
        worth = slots_pb2.RestoreWorth(
            restored_tokens=saved,
            prompt_tokens=_evaluated(after),
            reused_tokens=count_in(after, "cache_n"),
            source=slots_pb2.WORTH_SOURCE_PROBE,
            measured_at=timestamp(self.clock),
        )
        return capability, worth

    async def _save(self, backend: Backend, slot_id: int) -> int:
        """How many tokens were saved; 0 where the server does not save."""
        try:
            return count_in(await backend.server.act(slot_id, "save", _FILE), "n_saved")
        except (NotSupported, Refused):
            return 0


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


def _spare(told: list[ToldSlot]) -> ToldSlot:
    """A slot that nobody has used since the server started, while none is busy."""
    busy = [one.slot_id for one in told if one.is_busy]
    if busy:
        raise PreconditionError(
            f"slot {busy[0]} of the inference server is generating",
            reason="SLOT_BUSY",
            fix="call again when it has ended; `muniment slots show` tells",
        )
    # The last one is the least likely to be named by anybody.
    fresh = [one for one in told if one.is_fresh]
    if not fresh:
        raise PreconditionError(
            "every slot of the inference server was used since it started, and a probe would take"
            " away what one holds",
            reason="SLOT_NONE_SPARE",
            fix="start llama-server with a greater --parallel, or probe it right after its start",
        )
    return fresh[-1]


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


async def _require_own(backend: Backend, slot_id: int, last: dict[str, Any]) -> None:
    """Make sure that nobody began to use the slot since our last prompt in it.

    Raises:
        PreconditionError: It holds something else.
    """
    told = await backend.slot(slot_id)
    own = _evaluated(last) + count_in(last, "predicted_n")
    if told is None or told.is_busy or abs((told.prompt_tokens or 0) - own) > 1:
        raise PreconditionError(
            f"slot {slot_id} of the inference server was taken into use while it was probed",
            reason="SLOT_NONE_SPARE",
            fix="start llama-server with a greater --parallel, or probe it right after its start",
        )
