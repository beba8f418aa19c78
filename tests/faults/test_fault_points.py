"""Services that die at their worst moments, with a harness that calls: nobody notices.

Here are the points that every turn passes. What few calls reach has tests of its own, and
test_points sees to it that none is forgotten.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.house import House
from tests.support.crashes import fault_points
from tests.support.fronts import BridgeProcess
from tests.support.killing import agents, require_each_once_and_in_order

pytestmark = pytest.mark.timeout(240)

POINTS = sorted(
    fault_points("services/muniment/kit/store/store.py")
    | fault_points("services/muniment/memory/service.py")
)


@pytest.mark.parametrize("point", POINTS)
def test_a_turn_survives_it(house: House, armoury: Path, folder: Path, point: str) -> None:
    armed = armoury / point
    with agents(house.home, folder, 1) as (agent,):
        # On the second visit from now, with turns waiting behind it.
        armed.write_text("2")
        commits = [agent.commit() for _ in range(4)]
        seqs = [agent.bridge.content(commit)["seq"] for commit in commits]
        assert not armed.exists(), f"nothing here reaches {point}"
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        found = agent.bridge.call("memory.recall", query="agent0", k=100)["results"]
        assert sorted(hit["seq"] for hit in found) == seqs
        require_each_once_and_in_order(house.home, folder, [agent])


def test_a_pin_survives_it(house: House, armoury: Path, folder: Path) -> None:
    armed = armoury / "store.after_commit"
    with BridgeProcess(house.home, folder) as bridge:
        armed.write_text("")
        pinned = bridge.call("memory.pin", content="a rule")
        assert not armed.exists()
        assert pinned["already_pinned"] is False
        again = bridge.call("memory.pin", content="a rule")
        assert (again["already_pinned"], again["anchor_id"]) == (True, pinned["anchor_id"])
