"""The memory service is killed under its callers: they notice nothing, and nothing is lost.

A kill is SIGKILL, at a moment that a seed chooses, whatever is under way then.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.integration.house import House
from tests.support.killing import Killer, agents, kill, require_each_once_and_in_order

pytestmark = pytest.mark.timeout(240)

BRIDGES = 4
COMMITS = 100
KILLS = 6


def test_every_acknowledged_turn_is_there_once_and_in_order(house: House, folder: Path) -> None:
    rng = random.Random(20261130)
    moments = sorted(rng.sample(range(5, BRIDGES * COMMITS * 9 // 10), KILLS))
    with agents(house.home, folder, BRIDGES) as present:
        with Killer(house.home, "memory", moments, present) as killer:
            # Half of them wait for each answer, half send everything at once.
            patient, hasty = present[: BRIDGES // 2], present[BRIDGES // 2 :]
            threads = [
                threading.Thread(target=agent.commit_one_by_one, args=(COMMITS,))
                for agent in patient
            ]
            for thread in threads:
                thread.start()
            for _ in range(COMMITS):
                for agent in hasty:
                    agent.commit()
            for thread in threads:
                thread.join()
        assert len(killer.killed) == KILLS
        require_each_once_and_in_order(house.home, folder, present)


def test_every_tool_outlives_it(house: House, folder: Path) -> None:
    rng = random.Random(7)
    killed: list[int] = []
    with agents(house.home, folder, 1) as (agent,):
        bridge = agent.bridge
        uri = f"sakur4://anchors/{bridge.call('sakur4.status')['project_id']}"
        for number in range(3):
            rule, words = f"rule{number}", f"turn{number} rule{number}"
            steps: list[Callable[[], int]] = [
                agent.commit,
                partial(bridge.send_call, "memory.pin", content=rule),
                partial(bridge.send_call, "memory.recall", query=words),
                partial(bridge.send, "resources/read", {"uri": uri}),
            ]
            moment = rng.randrange(len(steps))
            requests = []
            for place, step in enumerate(steps):
                requests.append(step())
                if place == moment:
                    killed.append(kill(house.home, "memory", killed))
            committed, pinned, recalled, anchors = requests
            bridge.content(committed)
            assert bridge.content(pinned)["already_pinned"] is False
            found = {hit["text"] for hit in bridge.content(recalled)["results"]}
            assert found == {f"agent0 turn{number}", rule}
            assert bridge.text(anchors).count("[TASK CONTRACT]") == number + 1
        require_each_once_and_in_order(house.home, folder, [agent])
