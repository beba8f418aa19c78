"""A store that an earlier version wrote is brought up to date, and there is a way back."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError
from muniment.kit.paths import Home
from muniment.kit.store.schemas import peek_schema
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients, open_clients
from muniment.workflows.episodes import commit_episode, list_episodes, read_episode
from muniment.workflows.pins import list_pins, pin, unpin
from muniment.workflows.recall import recall
from muniment.workflows.status import list_projects
from tests.integration.house import House, a_house
from tests.support.old_program import PROGRAMS, OldProgram, unpack_program

pytestmark = pytest.mark.timeout(240)

_EPISODES = 150

LARGE = memory_pb2.CommitEpisodeRequest(
    role=memory_pb2.ROLE_ASSISTANT, content="large words " * 300_000
)


@dataclass(frozen=True)
class Told:
    """What a memory says, of all that a reader can ask."""

    episodes: tuple[tuple[memory_pb2.Episode, str], ...]
    pins: tuple[memory_pb2.PinnedRule, ...]
    projects: tuple[memory_pb2.Project, ...]
    recalled: tuple[str, ...]


def context(session: str = "first", *, project: str = "proj_one", key: str = "") -> CallContext:
    return CallContext(
        project_id=project,
        project_root=f"/srv/{project}",
        session_id=session,
        caller="test",
        idempotency_key=key,
    )


async def fill(home: Home) -> None:
    """What an agent does in a few sessions: turns, corrections, pins that come and go."""
    keys = (f"key-{number}" for number in itertools.count())
    async with open_clients(home) as clients:
        first = None
        for number in range(_EPISODES):
            request = memory_pb2.CommitEpisodeRequest(
                role=memory_pb2.ROLE_TOOL if number % 5 == 0 else memory_pb2.ROLE_USER,
                content=f"turn {number}: the port of server{number} is {9000 + number} ✓",
            )
            if number % 5 == 0:
                request.tool_name = "shell"
            if number in (40, 80) and first is not None:
                request.corrects = first.episode_id
            where = context(f"session {number % 3}" if number not in (0, 40, 80) else "first")
            episode = await commit_episode(clients, replace_key(where, next(keys)), request)
            first = first or episode
        # A key is of its project.
        other = context("s", project="proj_other", key="key-0")
        await commit_episode(clients, other, LARGE)
        await fill_pins(clients, keys)


async def fill_pins(clients: Clients, keys: Iterator[str]) -> None:
    for number in range(6):
        request = memory_pb2.PinRequest(
            content=f"rule {number}: never push to main",
            kind=memory_pb2.PinKind.ValueType(1 + number % 3),
            session_id="first" if number % 2 else None,
        )
        made = await pin(clients, replace_key(context(), next(keys)), request)
        if number == 2:
            await unpin(clients, replace_key(context(), next(keys)), made.pin.pin_id)
        if number == 3:
            request.kind = memory_pb2.PIN_KIND_SAFETY_CONSTRAINT
            await pin(clients, replace_key(context(), next(keys)), request)


def replace_key(where: CallContext, key: str) -> CallContext:
    return context(where.session_id, project=where.project_id, key=key)


async def ask(home: Home) -> Told:
    async with open_clients(home) as clients:
        episodes = []
        for project in ("proj_one", "proj_other"):
            asking = context(project=project)
            listed = [one async for one in list_episodes(clients, asking)]
            episodes += [await read_episode(clients, asking, one.episode_id) for one in listed]
        pins = await list_pins(clients, context(), session_id="first")
        found = await recall(
            clients, context(), memory_pb2.RecallRequest(query="port of server7", k=5)
        )
        return Told(
            tuple(episodes),
            tuple(pins.pins),
            tuple((await list_projects(clients)).projects),
            tuple(hit.text for hit in found.hits),
        )


@pytest.fixture(scope="module", params=PROGRAMS)
def version(request: pytest.FixtureRequest) -> int:
    """An earlier schema version."""
    found: int = request.param
    return found


@pytest.fixture(scope="module")
def old_program(version: int, tmp_path_factory: pytest.TempPathFactory) -> OldProgram:
    return unpack_program(PROGRAMS[version], tmp_path_factory.mktemp("old-program"))


@pytest.fixture
def house() -> Iterator[House]:
    with a_house() as house:
        house.home.runtime.mkdir(mode=0o700, parents=True)
        yield house


def folders(house: House) -> list[str]:
    return sorted(one.name for one in house.home.data("memory").iterdir() if one.is_dir())


def only_kept(house: House, kind: str) -> Path:
    (name,) = (one for one in folders(house) if one.startswith(f"store.{kind}-"))
    return house.home.data("memory") / name


def test_a_store_of_an_earlier_version_goes_forward_and_back(
    house: House, old_program: OldProgram, version: int
) -> None:
    home = house.home
    with old_program.memory(home, house.key_folder):
        asyncio.run(fill(home))
        before = asyncio.run(ask(home))
    assert len(before.episodes) == _EPISODES + 1
    assert len(before.pins) == 5
    assert [one.HasField("superseded_by") for one, _ in before.episodes].count(True) == 1

    house.must("up")
    assert asyncio.run(ask(home)) == before
    kept = only_kept(house, f"v{version}")
    assert folders(house) == ["store", kept.name]
    stored = peek_schema(kept)
    assert stored is not None
    assert stored.version == version
    assert house.must("verify-store")["findings"] == []
    asyncio.run(repeat_calls(home))
    house.must("commit", "--role", "user", "written by the new version")
    house.must("down")

    told = house.must("restore", str(kept))
    assert not told["started"]
    after = only_kept(house, "before-restore")
    assert told["kept"] == str(after)
    stored = peek_schema(home.data("memory") / "store")
    assert stored is not None
    assert stored.version == version
    with old_program.memory(home, house.key_folder):
        assert asyncio.run(ask(home)) == before

    # And forward once more, from a store that the old program had opened meanwhile.
    house.must("up")
    assert asyncio.run(ask(home)) == before
    house.must("restore", str(after))
    assert house.must("episodes")[0]["content_bytes"] == len("written by the new version")


async def repeat_calls(home: Home) -> None:
    """Calls that were answered before the change are not carried out again."""
    async with open_clients(home) as clients:
        request = memory_pb2.CommitEpisodeRequest(
            role=memory_pb2.ROLE_TOOL,
            tool_name="shell",
            content="turn 0: the port of server0 is 9000 ✓",
        )
        again = await commit_episode(clients, context("first", key="key-0"), request)
        assert again.seq == 1
        with pytest.raises(ConflictError):
            await commit_episode(clients, context("second", key="key-0"), request)
        other = context("s", project="proj_other", key="key-0")
        with pytest.raises(ConflictError):
            await commit_episode(clients, other, request)
        assert (await commit_episode(clients, other, LARGE)).seq == _EPISODES + 1
        request.content = "something else"
        with pytest.raises(ConflictError):
            await commit_episode(clients, context("first", key="key-0"), request)
