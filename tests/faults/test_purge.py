"""The service is killed in the middle of a purge: it is undone, or the next start finishes it."""

from __future__ import annotations

import asyncio
import itertools
from itertools import pairwise
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import MunimentError, UnavailableError
from muniment.v1 import memory_pb2
from muniment.workflows import episodes, pins, recall, transfer
from muniment.workflows.clients import Clients
from tests.support.crashes import fault_points
from tests.support.killable import Killable
from tests.support.memory_process import Caller, a_memory_home
from tests.support.planting import Garden, traces
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

UNDONE = ("store.before_commit",)
FINISHED = (
    "store.after_commit",
    "store.after_follow",
    "purge.marked",
    "purge.emptied",
    "compaction.copied",
    "swap.ready",
    "swap.moved",
    "swap.done",
    "purge.compacted",
    "purge.indexed",
)

KEPT = "proj_kept"
_keys = itertools.count(1)


def quiet(step: str, done: int, total: int) -> None:
    """Nobody listens."""


def test_every_point_of_a_purge_is_visited() -> None:
    own = fault_points("services/muniment/memory/purge.py")
    copying = fault_points("services/muniment/kit/store/compaction.py")
    swapping = fault_points("services/muniment/kit/store/folders.py")
    assert own | copying | swapping <= {*FINISHED}


async def plant(clients: Clients, project_id: str, garden: Garden) -> None:
    """A project with planted words in every place."""

    def context() -> CallContext:
        return CallContext(
            project_id,
            session_id=garden.planted[f"{project_id} session"],
            caller="test",
            idempotency_key=f"key-{next(_keys)}",
        )

    garden.plant(f"{project_id} session")
    for number in range(3):
        word = garden.plant(f"{project_id} turn {number}")
        request = memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.ROLE_TOOL,
            content=f"a turn with {word} " + "and more " * 700 * number,
            tool_name=garden.plant(f"{project_id} tool {number}"),
        )
        await episodes.commit_episode(clients, context(), request)
    for number in range(2):
        word = garden.plant(f"{project_id} rule {number}")
        session = garden.planted[f"{project_id} session"]
        pin = memory_pb2.PinRequest(content=f"mind {word}", session_id=session)
        pinned = await pins.pin(clients, context(), pin)
        if number:
            await pins.unpin(clients, context(), pinned.pin.pin_id)


async def purge(clients: Clients, project_id: str) -> memory_pb2.PurgeProjectResult:
    context = CallContext(caller="test", idempotency_key=f"key-{next(_keys)}")
    return await transfer.purge_project(clients, context, project_id, quiet)


async def die_in_purge(service: Killable, clients: Clients, project_id: str, point: str) -> None:
    """Purge the project with a service that dies at the point, and answers nothing."""
    service.arm(point)
    purging = asyncio.create_task(purge(clients, project_id))
    await asyncio.to_thread(
        until, lambda: not (service.faults / point).exists(), f"it dies at {point}", seconds=60.0
    )
    # Who had heard nothing by then waits for the service to come back.
    purging.cancel()
    (outcome,) = await asyncio.gather(purging, return_exceptions=True)
    assert isinstance(outcome, UnavailableError | asyncio.CancelledError), outcome


async def found(clients: Clients, project_id: str, word: str) -> list[str]:
    request = memory_pb2.RecallRequest(query=word, k=100)
    response = await recall.recall(clients, CallContext(project_id), request, deadline_seconds=30)
    return [hit.text for hit in response.hits]


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
async def test_killed_anywhere_it_is_undone_or_finished(tmp_path: Path, sealed: bool) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    garden = Garden()
    acknowledged: list[str] = []
    with a_memory_home() as home:
        if sealed:
            home.seal()
        service = Killable(home, faults)
        points = [*UNDONE, *(FINISHED if not sealed else ("purge.marked", "swap.moved"))]
        # Each life looks at what the one before it left, and dies at the next point.
        for before, point in pairwise(["", *points, ""]):
            async with service.running(dies=point != "") as clients:
                if before:
                    await demand_undone_or_finished(clients, garden, before)
                    listed = [
                        one.episode_id
                        async for one in episodes.list_episodes(clients, CallContext(KEPT))
                    ]
                    assert listed == acknowledged, before
                    assert len(await found(clients, KEPT, "lighthouse")) == len(acknowledged)
                    assert traces([home.home.path], garden.planted.values()) == [], before
                if point:
                    await plant(clients, f"proj_{point}", garden)
                    acknowledged.append(await keep(clients, point))
                    await die_in_purge(service, clients, f"proj_{point}", point)
            service.demand_visited()


async def demand_undone_or_finished(clients: Clients, garden: Garden, point: str) -> None:
    """Fail where a purge that died at the point is half done."""
    project_id = f"proj_{point}"
    if point in UNDONE:
        word = garden.planted[f"{project_id} turn 1"]
        (text,) = await found(clients, project_id, word)
        assert word in text
    # What was begun goes on by itself, and who asks waits for its end.
    result = await purge(clients, project_id)
    assert (result.purged.episodes, result.purged.pins) == (3, 1), point
    assert await Caller(clients, CallContext(KEPT, caller="test")).verify() == [], point


async def keep(clients: Clients, about: str) -> str:
    """A turn of another project; its id."""
    context = CallContext(KEPT, caller="test", idempotency_key=f"key-{next(_keys)}")
    request = memory_pb2.CommitEpisodeRequest(
        role=memory_pb2.ROLE_USER, content=f"a lighthouse at {about}"
    )
    return (await episodes.commit_episode(clients, context, request)).episode_id


async def test_what_was_begun_is_finished_by_itself(tmp_path: Path) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    garden = Garden()
    with a_memory_home() as home:
        service = Killable(home, faults)
        async with service.running(dies=True) as clients:
            await plant(clients, "proj_one", garden)
            await die_in_purge(service, clients, "proj_one", "purge.marked")
        async with service.running():
            await asyncio.to_thread(
                until,
                lambda: not traces([home.home.path], garden.planted.values()),
                "nobody asks, and nothing is left",
            )


async def test_traffic_of_others_goes_on_and_survives(tmp_path: Path) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    garden = Garden()
    acknowledged: list[str] = []
    with a_memory_home() as home:
        service = Killable(home, faults)
        async with service.running(dies=True) as clients:
            await plant(clients, "proj_one", garden)

            async def talk() -> None:
                try:
                    while True:
                        acknowledged.append(await keep(clients, str(len(acknowledged))))
                except MunimentError:
                    return

            talking = [asyncio.create_task(talk()) for _ in range(3)]
            await die_in_purge(service, clients, "proj_one", "swap.moved")
            for one in talking:
                one.cancel()
            await asyncio.gather(*talking, return_exceptions=True)
        service.demand_visited()
        async with service.running() as clients:
            await purge(clients, "proj_one")
            listed = {
                one.episode_id async for one in episodes.list_episodes(clients, CallContext(KEPT))
            }
            assert {*acknowledged} <= listed
            assert acknowledged
            caller = Caller(clients, CallContext(KEPT, caller="test"))
            assert await caller.verify() == []
        assert traces([home.home.path], garden.planted.values()) == []
