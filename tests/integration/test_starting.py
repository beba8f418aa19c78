"""Bridges start the services of their home by their first call, wherever and however spawned."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

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


def test_sixteen_at_once_start_one_supervisor() -> None:
    with a_house() as house:
        with ExitStack() as stack:
            bridges = [BridgeProcess(house.home, house.project) for _ in range(FRONTS)]
            for bridge in bridges:
                stack.enter_context(bridge)
            commits = [
                bridge.send_call("memory.commit_episode", role="user", content=f"turn{number}")
                for number, bridge in enumerate(bridges)
            ]
            statuses = [bridge.send_call("sakur4.status") for bridge in bridges]
            contents = [
                bridge.content(commit) for bridge, commit in zip(bridges, commits, strict=True)
            ]
            assert {content["seq"] for content in contents} == set(range(1, FRONTS + 1))
            assert len({content["session_id"] for content in contents}) == FRONTS
            for bridge, status in zip(bridges, statuses, strict=True):
                assert bridge.content(status)["could_not_tell"] == []
            assert [bridge.close_input() for bridge in bridges] == [0] * FRONTS
        assert len(supervisors(house)) == 1
        assert spawned(house) == ["supervisord started", "spawned: 'memory'", "spawned: 'worker'"]
        # They outlive the fronts.
        assert house.service("worker")["state"] == "RUNNING"


@pytest.fixture(scope="module")
def bare() -> Iterator[tuple[House, BridgeProcess]]:
    """A home whose services were started by a front without any environment."""
    with a_house() as house:
        arguments = ("--home", str(house.home.path))
        with BridgeProcess(house.home, house.project, *arguments, environment={}) as bridge:
            bridge.call("memory.commit_episode", role="user", content="in the bare home")
            yield house, bridge


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


def test_without_an_environment(bare: tuple[House, BridgeProcess]) -> None:
    house, bridge = bare
    assert bridge.call("sakur4.status")["project_root"] == str(house.project)
    assert len(supervisors(house)) == 1


def test_with_nothing_but_a_path(bare: tuple[House, BridgeProcess]) -> None:
    house, _ = bare
    with BridgeProcess(house.home, house.project) as bridge:
        found = bridge.call("memory.recall", query="bare")["results"]
    assert [hit["text"] for hit in found] == ["in the bare home"]


def test_in_the_c_locale_and_a_read_only_folder(sealed: tuple[House, BridgeProcess]) -> None:
    house, bridge = sealed
    text = "Größe 記憶 🧠\nzweite Zeile"
    bridge.call("memory.commit_episode", role="user", content=text)
    bridge.call("memory.pin", content=f"Regel: {text}")
    found = bridge.call("memory.recall", query="記憶")["results"]
    assert sorted(hit["text"] for hit in found) == [text, f"Regel: {text}"]
    assert len(supervisors(house)) == 1


def test_homes_are_apart(
    bare: tuple[House, BridgeProcess], sealed: tuple[House, BridgeProcess]
) -> None:
    for (house, bridge), own, other in ((bare, "bare", "sealed"), (sealed, "sealed", "bare")):
        assert len(bridge.call("memory.recall", query=own)["results"]) == 1
        assert bridge.call("memory.recall", query=other)["results"] == []
        status = bridge.call("sakur4.status")
        assert status["store_holds_other_projects"] is False
        assert house.home.socket("memory").exists()
    assert bare[0].supervisor_pid() != sealed[0].supervisor_pid()
    assert sealed[0].must("down") == {"stopped": True}
    assert bare[1].call("sakur4.status")["episodes"] == 1
