"""Bridges start the services of their home by their first call, wherever and however spawned."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.house import House, a_house
from tests.support.fronts import BridgeProcess

pytestmark = pytest.mark.timeout(240)

FRONTS = 16

# A folder that nobody can write to, root included, where there is one.
SEALED = Path("/proc")


def supervisors(house: House) -> list[str]:
    """The command lines of the supervisors that run for this home."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "args"], capture_output=True, check=True, text=True
    )
    configuration = str(house.home.runtime / "supervisord.conf")
    return [line for line in listed.stdout.splitlines() if configuration in line.split()]


def spawned(house: House) -> list[str]:
    """What the supervisor's log says to have started."""
    log = (house.home.logs / "supervisord.log").read_text()
    return [
        line.partition(" INFO ")[2].partition(" with pid")[0]
        for line in log.splitlines()
        if "started with pid" in line or "spawned: " in line
    ]


@dataclass(frozen=True)
class Crowd:
    """Fronts that were spawned at once for an empty home, and what each was told first."""

    house: House
    bridges: list[BridgeProcess]
    commits: list[dict[str, Any]]


@pytest.fixture(scope="module")
def crowd() -> Iterator[Crowd]:
    """Sixteen of them, without any environment: a harness may pass none."""
    with a_house() as house, ExitStack() as stack:
        arguments = ("--home", str(house.home.path))
        bridges = [
            BridgeProcess(house.home, house.project, *arguments, environment={})
            for _ in range(FRONTS)
        ]
        for bridge in bridges:
            stack.enter_context(bridge)
        requests = [
            bridge.send_call("memory.commit_episode", role="user", content=f"crowd turn{number}")
            for number, bridge in enumerate(bridges)
        ]
        commits = [
            bridge.content(request) for bridge, request in zip(bridges, requests, strict=True)
        ]
        yield Crowd(house, bridges, commits)


@pytest.fixture(scope="module")
def sealed() -> Iterator[tuple[House, BridgeProcess]]:
    """A home whose services were started in the C locale, from a folder that is read-only."""
    with a_house() as house:
        house.project.chmod(0o500)
        cwd = SEALED if SEALED.exists() else house.project
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LANG": "C"}
        with BridgeProcess(house.home, cwd, environment=environment) as bridge:
            bridge.call("memory.commit_episode", role="user", content="in the sealed home")
            yield house, bridge


def test_sixteen_at_once_start_one_supervisor(crowd: Crowd) -> None:
    assert len(supervisors(crowd.house)) == 1
    assert spawned(crowd.house) == [
        "supervisord started",
        "spawned: 'memory'",
        "spawned: 'slots'",
        "spawned: 'worker'",
    ]


def test_sixteen_at_once_are_all_answered(crowd: Crowd) -> None:
    assert {commit["seq"] for commit in crowd.commits} == set(range(1, FRONTS + 1))
    assert len({commit["session_id"] for commit in crowd.commits}) == FRONTS
    for bridge in crowd.bridges:
        status = bridge.call("sakur4.status")
        assert status["could_not_tell"] == []
        assert status["project_root"] == str(crowd.house.project)


def test_services_outlive_their_fronts(crowd: Crowd) -> None:
    assert [bridge.close_input() for bridge in crowd.bridges] == [0] * FRONTS
    assert crowd.house.service("worker")["state"] == "RUNNING"
    with BridgeProcess(crowd.house.home, crowd.house.project) as bridge:
        found = bridge.call("memory.recall", query="crowd", k=100)["results"]
    assert len(found) == FRONTS


def test_in_the_c_locale_and_a_read_only_folder(sealed: tuple[House, BridgeProcess]) -> None:
    house, bridge = sealed
    text = "Größe 記憶 🧠\nzweite Zeile"
    bridge.call("memory.commit_episode", role="user", content=text)
    bridge.call("memory.pin", content=f"Regel: {text}")
    found = bridge.call("memory.recall", query="記憶")["results"]
    assert sorted(hit["text"] for hit in found) == [text, f"Regel: {text}"]
    assert len(supervisors(house)) == 1


def test_homes_are_apart(crowd: Crowd, sealed: tuple[House, BridgeProcess]) -> None:
    house, here = sealed
    with BridgeProcess(crowd.house.home, crowd.house.project) as there:
        for bridge, own, other in ((here, "sealed", "crowd"), (there, "crowd", "sealed")):
            assert bridge.call("memory.recall", query=own)["results"]
            assert bridge.call("memory.recall", query=other)["results"] == []
            assert bridge.call("sakur4.status")["store_holds_other_projects"] is False
        assert house.supervisor_pid() != crowd.house.supervisor_pid()
        assert house.must("down") == {"stopped": True}
        assert there.call("sakur4.status")["episodes"] == FRONTS
