"""Counts of episodes and pins become those of the model that a real llama-server serves."""

from __future__ import annotations

import pytest

from tests.support.llama.models import FOREIGN, TINY
from tests.support.llama.process import LlamaServer, StartLlama
from tests.support.llama.texts import many_texts
from tests.support.memory_process import Caller, MemoryHome
from tests.support.slots_process import SlotsHome
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(240)

TURNS = [*(text for text in many_texts(600) if text), "one long turn " * 200_000]
RULES = ("never force-push", "ask before you delete")


async def _until_counted(caller: Caller, server: LlamaServer, *, but: str = "") -> str:
    """Wait until all counts are those of the server; by what name it counted."""

    async def is_counted() -> str | None:
        stats = await caller.stats()
        told = await caller.tokens()
        is_done = stats.exact_episodes == len(TURNS) and all(exact for _, _, exact in told)
        return stats.tokenizer if is_done and stats.tokenizer != but else None

    tokenizer = await eventually(is_counted, "all is counted by the model", seconds=90)
    texts = [*TURNS, *(await caller.rules())]
    told = await caller.tokens()
    assert told == [(len(server.tokens(text)), tokenizer, True) for text in texts]
    stats = await caller.stats()
    assert (stats.episodes_to_count, stats.uncountable_episodes) == (0, 0)
    return tokenizer


async def test_all_is_counted_by_the_model_and_by_the_one_that_follows_it(
    start_llama: StartLlama, slots_home: SlotsHome
) -> None:
    server, memory = start_llama(TINY), MemoryHome(slots_home.home)
    async with slots_home.serving(server), memory.running() as caller:
        for text in TURNS:
            await caller.commit(text)
        for rule in RULES:
            await caller.pin(rule)
        first = await _until_counted(caller, server)
        server.restart(model=start_llama.file_of(FOREIGN))
        second = await _until_counted(caller, server, but=first)
        assert first.partition(":")[0] == second.partition(":")[0] == "llama"
        server.kill()

        async def is_doubtful() -> bool:
            return not any(exact for _, _, exact in await caller.tokens())

        await eventually(is_doubtful, "nobody serves", seconds=60)
        assert {tokenizer for _, tokenizer, _ in await caller.tokens()} == {second}
        assert not (await caller.stats()).HasField("exact_episodes")
        assert await caller.verify() == []
