"""Episodes of every size go in and come out by one call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import NotFoundError
from muniment.kit.limits import CHUNK_BYTES
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients
from muniment.workflows.episodes import commit_episode, list_episodes, read_episode

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOOL = memory_pb2.ROLE_TOOL


def keyed(context: CallContext, key: str = "call") -> CallContext:
    return replace(context, idempotency_key=key)


def sized(size_bytes: int) -> str:
    """Text of that size whose chunks end inside characters."""
    line = f"{'…' * 33}\n"
    whole, rest = divmod(size_bytes - 1, len(line.encode()))
    return "x" + line * whole + "y" * rest


@pytest.mark.parametrize("size_bytes", [1, 7, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES + 5])
async def test_content_comes_back_as_it_went_in(
    clients: Clients, context: CallContext, size_bytes: int
) -> None:
    content = sized(size_bytes)
    request = memory_pb2.CommitEpisodeRequest(role=TOOL, content=content, tool_name="shell")
    episode = await commit_episode(clients, keyed(context), request)
    assert request.content == content
    assert episode.content_bytes == size_bytes == len(content.encode())
    assert (episode.role, episode.tool_name) == (TOOL, "shell")
    assert await read_episode(clients, context, episode.episode_id) == (episode, content)


async def test_the_size_alone_decides_the_way(
    clients: Clients, context: CallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    caller = type(clients.to_memory)
    for name in ("unary", "client_stream"):

        async def record(*arguments: object, way: str = name) -> object:
            used.append(way)
            return memory_pb2.CommitEpisodeResponse()

        monkeypatch.setattr(caller, name, record)
    for size_bytes in (CHUNK_BYTES, CHUNK_BYTES + 1):
        request = memory_pb2.CommitEpisodeRequest(role=TOOL, content=sized(size_bytes))
        await commit_episode(clients, keyed(context), request)
    assert used == ["unary", "client_stream"]


@pytest.mark.parametrize("size_bytes", [10, CHUNK_BYTES + 1])
async def test_a_repeated_commit_is_one_episode(
    clients: Clients, context: CallContext, size_bytes: int
) -> None:
    request = memory_pb2.CommitEpisodeRequest(role=TOOL, content=sized(size_bytes))
    first = await commit_episode(clients, keyed(context), request)
    assert await commit_episode(clients, keyed(context), request) == first
    assert [one async for one in list_episodes(clients, context)] == [first]


async def test_a_large_correction_corrects(clients: Clients, context: CallContext) -> None:
    small = memory_pb2.CommitEpisodeRequest(role=TOOL, content="x")
    wrong = await commit_episode(clients, keyed(context, "1"), small)
    request = memory_pb2.CommitEpisodeRequest(
        role=TOOL, content=sized(CHUNK_BYTES + 2), corrects=wrong.episode_id
    )
    right = await commit_episode(clients, keyed(context, "2"), request)
    read, _ = await read_episode(clients, context, wrong.episode_id)
    assert read.superseded_by == right.episode_id


async def test_an_unknown_episode_is_not_found(clients: Clients, context: CallContext) -> None:
    with pytest.raises(NotFoundError):
        await read_episode(clients, context, "ep_unknown")


async def test_listings_take_a_session_and_a_limit(clients: Clients, context: CallContext) -> None:
    committed = []
    for number in range(4):
        where = replace(context, session_id=f"s-{number % 2}", idempotency_key=f"call {number}")
        request = memory_pb2.CommitEpisodeRequest(role=TOOL, content="x")
        committed.append(await commit_episode(clients, where, request))
    assert [one async for one in list_episodes(clients, context)] == committed
    listed = [one async for one in list_episodes(clients, context, session_id="s-1")]
    assert listed == committed[1::2]
    assert [one async for one in list_episodes(clients, context, limit=3)] == committed[:3]
