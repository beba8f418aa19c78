"""Whoever reads gets the newest count, whichever way he asks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from muniment.kit.counting import TOKENIZER
from muniment.kit.paths import Home
from muniment.memory.counts import Progress, keep_costs, keep_counts
from muniment.v1 import memory_pb2
from tests.support.bare_memory import a_bare_memory
from tests.support.memory import DEADLINE_SECONDS, Agent, Memory, a_memory

_COUNT, _COST = 12_345, 54_321


def count_all(
    memory: Memory, episodes: Sequence[int], pins: Sequence[memory_pb2.PinnedRule]
) -> None:
    """Keep counts as a recount does."""
    store = memory.store
    counts = dict.fromkeys(episodes, _COUNT)
    store.write(lambda writer: keep_counts(writer, "model-1", counts)).result()
    store.write(
        lambda writer: keep_costs(writer, "model-1", [(pin, _COST) for pin in pins])
    ).result()


async def export(agent: Agent) -> bytes:
    return b"".join(
        [
            part.chunk
            async for part in agent.caller.server_stream(
                agent.stub.Export, memory_pb2.ExportRequest(), agent.context, DEADLINE_SECONDS
            )
        ]
    )


async def ask_all(agent: Agent, episode: memory_pb2.Episode) -> dict[str, memory_pb2.TokenCount]:
    """What each way of reading says of the episode, and of the one pin."""
    hits = (await agent.recall("needle")).hits
    (line,) = (
        one for one in map(json.loads, (await export(agent)).splitlines()) if "tokens" in one
    )
    told = line["tokens"]
    return {
        "read": (await agent.read(episode.episode_id))[0].tokens,
        "list": (await agent.episodes())[0].tokens,
        "recall": next(hit.episode.tokens for hit in hits if hit.HasField("episode")),
        "export": memory_pb2.TokenCount(
            count_tokens=told["count"], tokenizer=told["tokenizer"], exact=told["exact"]
        ),
        "recalled pin": next(hit.pin.token_cost for hit in hits if hit.HasField("pin")),
        "pins": (await agent.pins()).pins[0].token_cost,
        "pin again": (await agent.pin("no needle")).pin.token_cost,
    }


@pytest.mark.parametrize("serving", ["model-1", "model-2", None])
async def test_every_way_of_reading_shows_the_newest_count(home: Home, serving: str | None) -> None:
    async with a_memory(home) as memory:
        agent = memory.agent()
        episode = await agent.commit("a needle")
        pin = (await agent.pin("no needle")).pin
        assert {tokens.tokenizer for tokens in (await ask_all(agent, episode)).values()} == {
            TOKENIZER
        }
        count_all(memory, [episode.seq], [pin])
        if serving is not None:
            memory.serving.progress = Progress(serving, 1, 0)
        for name, tokens in (await ask_all(agent, episode)).items():
            expected = _COST if "pin" in name else _COUNT
            assert (tokens.count_tokens, tokens.tokenizer) == (expected, "model-1"), name
            assert tokens.exact == (serving == "model-1"), name


async def test_what_is_committed_is_estimated(home: Home) -> None:
    async with a_memory(home) as memory:
        memory.serving.progress = Progress("model-1", 0, 0)
        agent = memory.agent()
        episode = await agent.commit("a needle", key="once")
        assert (episode.tokens.tokenizer, episode.tokens.exact) == (TOKENIZER, False)
        count_all(memory, [episode.seq], [])
        # A call that is repeated has the answer that it had.
        assert await agent.commit("a needle", key="once") == episode


async def test_counts_of_what_is_counted(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = memory.agent()
        for number in range(5):
            await agent.commit(f"{number}")
        stats = await agent.stats()
        assert stats.tokenizer == TOKENIZER
        told = ("exact_episodes", "episodes_to_count", "uncountable_episodes")
        assert not any(field.name in told for field, _ in stats.ListFields())
        memory.serving.progress = Progress("model-1", 2, 1)
        stats = await agent.stats()
        assert stats.tokenizer == "model-1"
        assert [getattr(stats, name) for name in told] == [2, 2, 1]
        # More than there are: some were purged, and who counts has not seen it yet.
        memory.serving.progress = Progress("model-1", 9, 1)
        stats = await agent.stats()
        assert [getattr(stats, name) for name in told] == [4, 0, 1]


def test_an_import_believes_no_count_to_be_exact(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path / "one") as memory:
        memory.commit("proj_one", "a needle")
        lines = memory.export()
    claimed = rb'"tokens":{"count":77,"tokenizer":"model-1","exact":true}'
    lines, found = re.subn(rb'"tokens":{.*?}', claimed, lines)
    assert found == 1
    with a_bare_memory(tmp_path / "other") as memory:
        assert memory.take(lines).result.episodes.imported == 1
        again = memory.export()
    assert b'"tokens":{"count":77,"tokenizer":"model-1","exact":false}' in again
