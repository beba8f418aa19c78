"""What the store knows of projects, and its counts, beside a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.counting import TOKENIZER
from muniment.kit.errors import NotFoundError
from muniment.kit.paths import Home
from muniment.memory.limits import ROOTS_LIMIT
from muniment.v1 import memory_pb2
from tests.support.memory import Agent, Memory, a_memory

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def project(agent: Agent) -> memory_pb2.Project:
    (found,) = [one for one in await agent.projects() if one.project_id == agent.project_id]
    return found


async def test_an_empty_store_counts_nothing(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = memory.agent()
        assert await agent.stats() == memory_pb2.GetStatsResponse(tokenizer=TOKENIZER)
        assert await agent.projects() == []


async def test_reading_makes_no_project(agent: Agent) -> None:
    await agent.recall("anything")
    await agent.pins()
    await agent.stats()
    with pytest.raises(NotFoundError):
        await agent.commit("x", corrects="ep_unknown")
    assert agent.project_id not in [one.project_id for one in await agent.projects()]


steps = st.lists(
    st.tuples(
        st.sampled_from(["commit", "pin", "unpin", "fail"]),
        st.integers(0, 2),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(steps=steps)
async def test_counts_are_those_of_a_model(
    memory: Memory, steps: list[tuple[str, int, str]]
) -> None:
    agents = [memory.agent() for _ in range(3)]
    before = await agents[0].stats()
    episodes = [0, 0, 0]
    pins: list[dict[str, str]] = [{}, {}, {}]
    for step, who, text in steps:
        match step:
            case "commit":
                await agents[who].commit(text)
                episodes[who] += 1
            case "pin":
                pins[who][text] = (await agents[who].pin(text)).pin.pin_id
            case "unpin" if text in pins[who]:
                await agents[who].unpin(pins[who].pop(text))
            case "unpin" | "fail":
                with pytest.raises(NotFoundError):
                    await agents[who].unpin("pin_unknown")
    for who, agent in enumerate(agents):
        stats = await agent.stats()
        assert (stats.project_episodes, stats.project_pins) == (episodes[who], len(pins[who]))
        assert stats.episodes - before.episodes == sum(episodes)
        assert stats.pins - before.pins == sum(map(len, pins))
        assert stats.projects == len(await agent.projects())
    touched = {agents[who].project_id for step, who, _ in steps if step in ("commit", "pin")}
    known = {one.project_id: one for one in await agents[0].projects()}
    assert touched == known.keys() & {agent.project_id for agent in agents}
    for who, agent in enumerate(agents):
        if agent.project_id in touched:
            listed = known[agent.project_id]
            assert (listed.episodes, listed.pins) == (episodes[who], len(pins[who]))


async def test_the_oldest_comes_first_with_its_time(memory: Memory) -> None:
    agents = [memory.agent() for _ in range(3)]
    first = await agents[2].pin("x")
    for agent in (agents[0], agents[1], agents[2]):
        await agent.commit("x")
    mine = [agent.project_id for agent in agents]
    listed = [one for one in await agents[0].projects() if one.project_id in mine]
    assert [one.project_id for one in listed] == [mine[2], mine[0], mine[1]]
    assert listed[0].created_at.ToNanoseconds() >= first.pin.created_at.ToNanoseconds()


async def test_roots_are_remembered_newest_last(agent: Agent) -> None:
    async def come_from(root: str) -> None:
        await agent.with_context(project_root=root).commit("x")

    for root in ("/a", "/b é", "/b é", "", "/a", "/c"):
        await come_from(root)
    assert list((await project(agent)).roots) == ["/b é", "/a", "/c"]


async def test_roots_are_limited(agent: Agent) -> None:
    for number in range(ROOTS_LIMIT + 3):
        await agent.with_context(project_root=f"/{number}").commit("x")
    roots = list((await project(agent)).roots)
    assert roots == [f"/{number}" for number in range(3, ROOTS_LIMIT + 3)]


async def test_counts_outlive_a_restart(home: Home) -> None:
    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        await agent.commit("x")
        await agent.pin("y")
        before = await agent.stats(), await agent.projects()
    async with a_memory(home) as memory:
        agent = memory.agent("proj_1")
        assert (await agent.stats(), await agent.projects()) == before
