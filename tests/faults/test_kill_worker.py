"""The bridge's worker, and then everything, is killed under its fronts."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from muniment.cli.services import list_services
from tests.integration.house import House, a_house, is_running
from tests.support.killing import Killer, agents, require_each_once_and_in_order
from tests.waiting import until

pytestmark = pytest.mark.timeout(240)

BRIDGES = 2
COMMITS = 40
KILLS = 2


def test_fronts_send_again_what_it_had_not_answered(house: House, folder: Path) -> None:
    rng = random.Random(11)
    moments = sorted(rng.sample(range(3, BRIDGES * COMMITS * 9 // 10), KILLS))
    with agents(house.home, folder, BRIDGES) as present:
        with Killer(house.home, "worker", moments, present) as killer:
            for _ in range(COMMITS):
                for agent in present:
                    agent.commit()
        assert len(killer.killed) == KILLS
        require_each_once_and_in_order(house.home, folder, present)


def test_what_waits_keeps_its_order(house: House, folder: Path) -> None:
    """Recalls too: after the restart each sees the turns before it, and none after."""
    with agents(house.home, folder, 1) as (agent,):
        agent.commit_one_by_one(1)
        with Killer(house.home, "worker", [4], [agent]):
            recalls = []
            for _ in range(20):
                agent.commit()
                recalls.append(agent.bridge.send_call("memory.recall", query="agent0", k=100))
        for number, recall in enumerate(recalls):
            assert len(agent.bridge.content(recall)["results"]) == number + 2


def test_the_next_call_brings_back_what_was_killed_at_once() -> None:
    with a_house() as house, agents(house.home, house.project, 2) as (first, second):
        first.commit_one_by_one(2)
        second.commit_one_by_one(1)
        before = house.supervisor_pid()
        pids = [before, *(one.pid for one in list_services(house.home) if one.pid)]
        assert len(pids) == 4
        under_way = [second.commit() for _ in range(5)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(is_running, pids)), "all are dead")
        first.commit_one_by_one(2)
        for commit in under_way:
            second.bridge.content(commit)
        assert house.supervisor_pid() != before
        require_each_once_and_in_order(house.home, house.project, [first, second])
