"""Services that die at their worst moments: each named fault point is armed, and visited.

The points are read from the source. One that no scenario here reaches fails its test, so that a
new one does not go untested.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.house import House
from tests.support.fronts import BridgeProcess
from tests.support.killing import agents, require_each_once_and_in_order

pytestmark = pytest.mark.timeout(240)

_SOURCE = Path(__file__).resolve().parents[2]
_REACHED = re.compile(r"""\bfaults\.reach\(\s*["']([^"']+)["']""")
_CALLED = re.compile(r"\bfaults\.reach\(")


def points() -> list[str]:
    """Every fault point in the source, by name."""
    texts = [
        path.read_text(encoding="utf-8")
        for root in ("services", "mcp_bridge")
        for path in (_SOURCE / root).rglob("*.py")
    ]
    names = {name for text in texts for name in _REACHED.findall(text)}
    calls = sum(len(_CALLED.findall(text)) for text in texts)
    assert calls == sum(len(_REACHED.findall(text)) for text in texts), "a name that is no literal"
    return sorted(names)


@pytest.mark.parametrize("point", points())
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


def test_there_are_points() -> None:
    assert "store.before_commit" in points()
