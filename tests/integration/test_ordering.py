"""Calls that are sent without waiting see exactly what was sent before them.

This is the promise of the lanes, over real processes: a harness writes a batch of requests, and
the answers are those of asking one by one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.house import House
from tests.support.fronts import LEGACY, MODERN, BridgeProcess
from tests.support.stored import stored_turns

pytestmark = pytest.mark.timeout(240)

PAIRS = 1000
MIXED_CALLS = 300

# Turns that one recall finds: few enough to be listed whole.
WINDOW = 20

Check = Callable[[], None]


@pytest.fixture
def bridge(common_house: House, tmp_path: Path) -> Iterator[BridgeProcess]:
    with BridgeProcess(common_house.home, tmp_path) as bridge:
        bridge.initialize()
        yield bridge


def texts(bridge: BridgeProcess, recall: int) -> list[str]:
    return sorted(hit["text"] for hit in bridge.content(recall)["results"])


def test_every_recall_sees_every_commit_before_it_and_none_after(
    common_house: House, tmp_path: Path, bridge: BridgeProcess
) -> None:
    turns = [f"window{number // WINDOW} turn{number}" for number in range(PAIRS)]
    commits, recalls = [], []
    for number, turn in enumerate(turns):
        # The eras take turns on the one connection.
        era = (MODERN, LEGACY)[number // WINDOW % 2]
        commits.append(
            bridge.send_call("memory.commit_episode", era=era, role="user", content=turn)
        )
        window = turn.split()[0]
        recalls.append(bridge.send_call("memory.recall", era=era, query=window, k=100))
    for number, recall in enumerate(recalls):
        start = number - number % WINDOW
        assert texts(bridge, recall) == sorted(turns[start : number + 1])
    seqs = [bridge.content(commit)["seq"] for commit in commits]
    assert seqs == list(range(seqs[0], seqs[0] + PAIRS))
    assert [turn.content for turn in stored_turns(common_house.home, tmp_path)] == turns


@dataclass
class Model:
    """What the project has to hold, call by call."""

    bridge: BridgeProcess
    project: str
    store_episodes: int
    """What other projects hold."""
    turns: list[str] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)

    @property
    def window(self) -> str:
        return f"window{(len(self.turns) + len(self.pins)) // WINDOW}"

    def commit(self) -> Check:
        self.turns.append(f"{self.window} turn{len(self.turns)}")
        seq = self.store_episodes + len(self.turns)
        call = self.bridge.send_call("memory.commit_episode", role="tool", content=self.turns[-1])

        def check() -> None:
            assert self.bridge.content(call)["seq"] == seq

        return check

    def pin(self) -> Check:
        self.pins.append(f"{self.window} rule{len(self.pins)}")
        call = self.bridge.send_call("memory.pin", content=self.pins[-1])

        def check() -> None:
            assert self.bridge.content(call)["already_pinned"] is False

        return check

    def recall(self) -> Check:
        window = self.window
        expected = sorted(one for one in self.turns + self.pins if one.split()[0] == window)
        call = self.bridge.send_call("memory.recall", query=window, k=100)

        def check() -> None:
            assert texts(self.bridge, call) == expected

        return check

    def status(self) -> Check:
        counts = (len(self.turns), len(self.pins))
        call = self.bridge.send_call("sakur4.status")

        def check() -> None:
            status = self.bridge.content(call)
            assert (status["project_episodes"], status["project_anchors"]) == counts

        return check

    def anchors(self) -> Check:
        expected = [f"[TASK CONTRACT] {pin}" for pin in self.pins]
        uri = f"sakur4://anchors/{self.project}"
        read = self.bridge.send("resources/read", {"uri": uri})

        def check() -> None:
            lines = self.bridge.text(read).splitlines()
            assert [line for line in lines if line.startswith("[")] == expected

        return check


@pytest.mark.parametrize("seed", [1, 2])
def test_mixed_calls_answer_as_if_asked_one_by_one(bridge: BridgeProcess, seed: int) -> None:
    rng = random.Random(seed)
    status = bridge.call("sakur4.status")
    model = Model(bridge, status["project_id"], status["episodes"])
    ask = (model.commit, model.commit, model.pin, model.recall, model.status, model.anchors)
    checks = [rng.choice(ask)() for _ in range(MIXED_CALLS)]
    for check in checks:
        check()
