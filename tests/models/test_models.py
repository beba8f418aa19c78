"""Real models: a restore spares the prefill, and where it does not, we say so.

Not part of the ordinary tests: 350 MB are fetched for them, and they take minutes.
`make test-models`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from muniment.v1 import slots_pb2
from tests.support.llama.packaged import GEMMA3, SMOLLM2
from tests.support.llama.process import LlamaServer, StartLlama
from tests.support.llama.turns import Conversation, Turn
from tests.support.refusals import refused
from tests.support.slots_process import SlotsCaller, SlotsHome
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(900)

PROMPT_LINES = 250
LEAST_PROMPT_TOKENS = 4000
SLOT_TOKENS = 6144
# A line more, and the last checkpoint's distance from the end.
TAIL_TOKENS = 100
LEAST_RATIO = 20
PROBE_SECONDS = 600.0
BUSY_LINES = 60

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Played:
    """A conversation whose server was killed and had its slot restored."""

    cold: Turn
    warm: Turn
    saved: slots_pb2.SaveSnapshotResponse
    restored: slots_pb2.RestoreSnapshotResponse
    after: Turn

    @property
    def ratio(self) -> float:
        """How much longer the first prompt took than restore and next turn together."""
        return self.cold.prompt_ms / (self.restored.elapsed_ms + self.after.prompt_ms)

    def __str__(self) -> str:
        """All figures."""
        return (
            f"cold {self.cold.prompt_tokens} tokens in {self.cold.prompt_ms:.0f} ms"
            f" · warm {self.warm.evaluated_tokens} in {self.warm.prompt_ms:.0f} ms"
            f" · saved {self.saved.snapshot.size_bytes / 1e6:.1f} MB in {self.saved.elapsed_ms} ms"
            f" (server {self.saved.server_ms}) · restored in {self.restored.elapsed_ms} ms"
            f" (server {self.restored.server_ms}) · then {self.after.evaluated_tokens} of"
            f" {self.after.prompt_tokens} evaluated in {self.after.prompt_ms:.0f} ms"
            f" · ratio {self.ratio:.1f}"
        )


async def play(server: LlamaServer, caller: SlotsCaller) -> Played:
    """Cold, warm, saved, killed, restored, warm."""
    talk = Conversation(server, first_lines=PROMPT_LINES)
    cold = await asyncio.to_thread(talk.send)
    warm = await asyncio.to_thread(talk.go_on)
    saved = await caller.save()
    await asyncio.to_thread(server.restart)
    restored = await caller.restore(saved.snapshot.file_path)
    after = await asyncio.to_thread(talk.go_on)
    assert cold.prompt_tokens >= LEAST_PROMPT_TOKENS
    assert cold.reused_tokens == 0
    return Played(cold, warm, saved, restored, after)


def restore_reuse(server: slots_pb2.Server) -> slots_pb2.Capability:
    (found,) = (
        one for one in server.capabilities if one.kind == slots_pb2.CAPABILITY_KIND_RESTORE_REUSE
    )
    return found


@pytest.mark.parametrize("is_sealed", [False, True], ids=["plain", "sealed"])
async def test_restore_spares_the_prefill(
    start_llama: StartLlama, slots_home: SlotsHome, tell: Tell, is_sealed: bool
) -> None:
    if is_sealed:
        slots_home.seal()
    server = start_llama(SMOLLM2, slot_tokens=SLOT_TOKENS)
    async with slots_home.serving(server) as caller:
        played = await play(server, caller)
    tell(str(played))
    assert played.saved.snapshot.is_sealed is is_sealed
    assert played.warm.evaluated_tokens <= TAIL_TOKENS
    assert played.after.evaluated_tokens <= TAIL_TOKENS
    assert played.ratio >= LEAST_RATIO


async def test_sliding_window_with_checkpoints(
    start_llama: StartLlama, slots_home: SlotsHome, tell: Tell
) -> None:
    server = start_llama(GEMMA3, slot_tokens=SLOT_TOKENS)
    async with slots_home.serving(server) as caller:
        played = await play(server, caller)
        tell(str(played))
        probed = restore_reuse(await replace(caller, seconds=PROBE_SECONDS).probe())
        tell(f"{slots_pb2.Standing.Name(probed.standing)} {probed.detail}")
    assert played.after.evaluated_tokens <= TAIL_TOKENS
    assert played.ratio >= LEAST_RATIO
    assert probed.standing == slots_pb2.STANDING_YES


async def test_sliding_window_without_checkpoints(
    start_llama: StartLlama, slots_home: SlotsHome, tell: Tell
) -> None:
    server = start_llama(GEMMA3, "--ctx-checkpoints", "0", slot_tokens=SLOT_TOKENS)
    async with slots_home.serving(server) as caller:
        probed = restore_reuse(await replace(caller, seconds=PROBE_SECONDS).probe())
        tell(f"{slots_pb2.Standing.Name(probed.standing)} {probed.detail} · fix: {probed.fix}")
        played = await play(server, caller)
        tell(str(played))
        tell(f"a save notes {list(played.saved.notes)}, a restore {list(played.restored.notes)}")
    assert played.after.reused_tokens == 0
    assert probed.standing == slots_pb2.STANDING_NO
    assert "--ctx-checkpoints" in probed.fix
    assert any("evaluated again" in note for note in played.saved.notes)
    # It was started anew since, and may have been given other flags.
    assert any("before that 0 of" in note for note in played.restored.notes)


async def test_server_tells_what_it_does_while_it_works_on_a_prompt(
    start_llama: StartLlama, slots_home: SlotsHome, tell: Tell
) -> None:
    server = start_llama(SMOLLM2, slot_tokens=SLOT_TOKENS)
    talk = Conversation(server, first_lines=BUSY_LINES)
    async with slots_home.serving(server) as caller:
        prefill = asyncio.create_task(asyncio.to_thread(talk.send))

        async def busy() -> bool:
            return (await caller.slots())[0].is_busy

        await eventually(busy, "the slot is busy")
        found = await caller.server()
        counted = await caller.count(["one two three"])
        await refused(caller.save(), "SLOT_BUSY", fix="slots show")
        is_busy = await busy()
        tell(f"it answered within {(await prefill).prompt_ms:.0f} ms of prefill")
    assert is_busy
    assert found.condition == slots_pb2.SERVER_CONDITION_READY
    assert counted.exact
