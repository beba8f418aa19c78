"""Who listens to a resource is told of its changes, whoever made them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from muniment.bridge.connection import Worker
from muniment.bridge.eras import SUBSCRIPTIONS_LIMIT
from muniment.kit.identity import resolve_project
from muniment.kit.paths import Home
from tests.support.homes import a_home
from tests.support.inprocess import LEGACY, Front, a_worker
from tests.support.memory import Agent, Memory, a_memory

UPDATED = "notifications/resources/updated"
LISTENING = "notifications/subscriptions/acknowledged"


@pytest_asyncio.fixture
async def home() -> AsyncIterator[Home]:
    with a_home() as home:
        yield home


@pytest_asyncio.fixture
async def memory(home: Home) -> AsyncIterator[Memory]:
    async with a_memory(home) as memory:
        yield memory


@pytest_asyncio.fixture
async def worker(home: Home, memory: Memory) -> AsyncIterator[Worker]:
    async with a_worker(home) as worker:
        yield worker


@pytest.fixture
def somebody(memory: Memory, tmp_path: Path) -> Agent:
    """Another window of the same project."""
    return memory.agent(resolve_project(tmp_path).project_id)


def updates(front: Front) -> list[str]:
    notes = [frame["notify"] for frame in front.notices]
    return [note["params"]["uri"] for note in notes if note["method"] == UPDATED]


def listens(front: Front) -> bool:
    return any(frame["notify"]["method"] == LISTENING for frame in front.notices)


async def subscribe(front: Front, uri: str, method: str = "resources/subscribe") -> dict[str, Any]:
    return await front.ask(method, {"uri": uri}, era=LEGACY)


async def listen(front: Front, *uris: str) -> int:
    number = front.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    await front.hears(lambda: listens(front))
    return number


async def test_the_older_era_is_told_of_what_another_window_pins(
    worker: Worker, somebody: Agent, tmp_path: Path
) -> None:
    uri = f"sakur4://anchors/{somebody.project_id}"
    front = Front(worker, tmp_path)
    assert (await subscribe(front, uri))["result"] == {}
    pinned = await somebody.pin("never force-push")
    await front.hears(lambda: updates(front) == [uri])
    await somebody.unpin(pinned.pin.pin_id)
    await front.hears(lambda: updates(front) == [uri, uri])
    await front.connection.finish()


async def test_a_front_that_is_dropped_leaves_no_stream_behind(
    worker: Worker, tmp_path: Path
) -> None:
    front = Front(worker, tmp_path)
    await listen(front, "sakur4://anchors/p")
    await subscribe(front, "sakur4://anchors/p")
    assert worker.changes._listeners
    front.connection.stop_telling()
    await asyncio.gather(*front.connection._tasks.values(), return_exceptions=True)
    assert not worker.changes._listeners


async def test_nobody_is_told_of_other_projects_or_after_unsubscribing(
    worker: Worker, memory: Memory, somebody: Agent, tmp_path: Path
) -> None:
    uri = f"sakur4://anchors/{somebody.project_id}"
    left, stayed = Front(worker, tmp_path), Front(worker, tmp_path, connection="d" * 32)
    for front in (left, stayed):
        await subscribe(front, uri)
    await memory.agent().pin("of another project")
    assert (await subscribe(left, uri, "resources/unsubscribe"))["result"] == {}
    await somebody.pin("never force-push")
    await stayed.hears(lambda: updates(stayed) == [uri])
    assert updates(left) == []
    await stayed.connection.finish()


async def test_a_worker_that_comes_back_is_told_what_was_subscribed(
    worker: Worker, somebody: Agent, tmp_path: Path
) -> None:
    uri = f"sakur4://anchors/{somebody.project_id}"
    front = Front(worker, tmp_path, subscribed=(uri,))
    # Whoever asks again is not told twice.
    await subscribe(front, uri)
    await somebody.pin("never force-push")
    await front.hears(lambda: bool(updates(front)))
    await somebody.pin("say please")
    await front.hears(lambda: updates(front) == [uri, uri])
    await front.connection.finish()


@pytest.mark.parametrize(
    "uri", ["sakur4://nothing/here", "file:///etc/passwd", "", "sakur4://anchors/" + "x" * 5000]
)
async def test_what_is_no_resource_cannot_be_subscribed_to(
    worker: Worker, tmp_path: Path, uri: str
) -> None:
    front = Front(worker, tmp_path)
    error = (await subscribe(front, uri))["error"]
    assert error["code"] == -32602
    assert "sakur4://anchors/{project}" in error["message"] or "uri" in error["message"]


async def test_a_connection_subscribes_to_so_many_and_no_more(
    worker: Worker, memory: Memory, tmp_path: Path
) -> None:
    front = Front(worker, tmp_path)
    uris = [f"sakur4://anchors/p{number}" for number in range(SUBSCRIPTIONS_LIMIT)]
    for uri in (*uris, uris[0]):
        assert (await subscribe(front, uri))["result"] == {}
    error = (await subscribe(front, "sakur4://anchors/one-more"))["error"]
    assert error["data"]["reason"] == "SUBSCRIPTIONS_TOO_MANY"
    assert "unsubscribe" in error["message"]
    await subscribe(front, uris[0], "resources/unsubscribe")
    assert (await subscribe(front, "sakur4://anchors/one-more"))["result"] == {}
    await front.connection.finish()


async def test_the_modern_era_listens_until_it_is_cancelled(
    worker: Worker, somebody: Agent, tmp_path: Path
) -> None:
    uri = f"sakur4://anchors/{somebody.project_id}"
    front = Front(worker, tmp_path)
    number = await listen(front, uri)
    await somebody.pin("never force-push")
    await front.hears(lambda: updates(front) == [uri])
    told = front.notices[-1]["notify"]["params"]["_meta"]
    assert told == {"io.modelcontextprotocol/subscriptionId": f"id-{number}"}
    front.cancel(number)
    await somebody.pin("say please")
    assert (await front.call("sakur4.status"))["isError"] is False
    assert updates(front) == [uri]


async def test_a_front_that_leaves_does_not_keep_the_worker(
    worker: Worker, somebody: Agent, tmp_path: Path
) -> None:
    front = Front(worker, tmp_path)
    number = await listen(front, f"sakur4://anchors/{somebody.project_id}")
    await front.connection.finish()
    assert number not in front.answered


async def test_a_watch_that_broke_goes_on_from_where_it_was(somebody: Agent) -> None:
    await somebody.pin("before")
    first = await somebody.watch(None)
    await somebody.pin("meanwhile")
    again = await somebody.watch(first.position)
    assert list(again.project_ids) == [somebody.project_id]
    assert not again.missed
    first.position.incarnation = "another life"
    assert (await somebody.watch(first.position)).missed
