"""Harnesses end as they do in life, with commits under way: no front stays, and no turn is lost.

Ten rounds or so by default; MUNIMENT_TEST_ORPHANS says how many, all endings together.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from tests.integration.house import House, a_house, is_running
from tests.support import harness
from tests.support.fronts import BridgeProcess, bridge_command
from tests.waiting import until

ROUNDS = int(os.environ.get("MUNIMENT_TEST_ORPHANS", "12"))

GONE_SECONDS = 5.0
"""After this no front is left."""

MOST_ANSWERS = 40
"""A harness ends after so many answers at the latest."""


class Harness:
    """A harness with a front, both processes of their own."""

    def __init__(self, house: House, folder: Path, prefix: str, company: str) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, harness.__file__, prefix, company),
                *(*bridge_command(), "--home", str(house.home.path)),
            ],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.acknowledged: dict[str, str] = {}
        """Episode by content."""
        self.front: int = self._next()["front"]
        self.sibling: int | None = self._next()["sibling"] if company == harness.SIBLING else None

    def hear(self, count: int) -> None:
        """Wait for so many answers."""
        while len(self.acknowledged) < count:
            self._take(self._next())

    def hear_the_rest(self) -> None:
        """Take what else it has told, to its end."""
        for line in self._told:
            self._take(json.loads(line))

    def deafen(self) -> None:
        """Let it close the front's output."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """End it and its sibling, if they are still there."""
        for pid in (self.process.pid, self.sibling):
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    @property
    def _told(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _next(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._told.readline())
        return told

    def _take(self, told: dict[str, Any]) -> None:
        answer = told["answer"]
        if "result" not in answer:
            return  # It was told that it may not be recorded.
        assert not answer["result"]["isError"], answer
        self.acknowledged[answer["id"]] = answer["result"]["structuredContent"]["episode_id"]


def _kill_harness(harness: Harness) -> None:
    os.kill(harness.process.pid, signal.SIGKILL)


def _signal_front(number: signal.Signals) -> Callable[[Harness], None]:
    return lambda harness: os.kill(harness.front, number)


ENDINGS: dict[str, tuple[str, Callable[[Harness], None]]] = {
    "killed": ("ALONE", _kill_harness),
    "killed-with-a-sibling-at-the-pipes": (harness.SIBLING, _kill_harness),
    "deaf": ("ALONE", Harness.deafen),
    "SIGHUP": ("ALONE", _signal_front(signal.SIGHUP)),
    "SIGINT": ("ALONE", _signal_front(signal.SIGINT)),
    "SIGTERM": ("ALONE", _signal_front(signal.SIGTERM)),
}
ROUNDS_OF_EACH = -(-ROUNDS // len(ENDINGS))

pytestmark = pytest.mark.timeout(120 + 20 * ROUNDS_OF_EACH)


@contextmanager
def a_harness(house: House, folder: Path, prefix: str, company: str) -> Iterator[Harness]:
    found = Harness(house, folder, prefix, company)
    try:
        yield found
    finally:
        found.end()


def fronts(house: House) -> list[str]:
    """The processes of the fronts of this file's harnesses."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid,stat,args"], capture_output=True, check=True, text=True
    )
    program, home = bridge_command()[0], str(house.home.path)
    return [
        line
        for line in listed.stdout.splitlines()
        if program in line.split() and home in line.split() and harness.__file__ not in line
        if not line.split()[1].startswith("Z")
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_front_stays_and_no_turn_is_lost(house: House, folder: Path, ending: str) -> None:
    company, end = ENDINGS[ending]
    rng = random.Random(ending)
    acknowledged: dict[str, str] = {}
    for number in range(ROUNDS_OF_EACH):
        with a_harness(house, folder, f"{ending} {number}", company) as one:
            one.hear(rng.randint(0, MOST_ANSWERS))
            assert is_running(one.front)
            end(one)
            until(lambda: not fronts(house), "no front is left", seconds=GONE_SECONDS)
            one.hear_the_rest()
            acknowledged |= one.acknowledged
    stored = house.must("episodes", "--project", str(folder))
    ids = Counter(episode["episode_id"] for episode in stored)
    assert max(ids.values(), default=1) == 1
    assert [content for content, one in acknowledged.items() if one not in ids] == []
    # At the most what was under way at the end is there without its harness knowing.
    assert len(ids) - len(acknowledged) <= ROUNDS_OF_EACH * harness.UNDER_WAY


def test_a_probe_that_is_killed_and_the_real_front_do_no_harm() -> None:
    """As some clients do it: one process is asked who it is and killed, another one stays."""
    with a_house() as house, ExitStack() as stack:
        for _ in range(2):
            probe = stack.enter_context(BridgeProcess(house.home, house.project))
            assert probe.result(probe.send("server/discover"))["supportedVersions"]
            probe.process.kill()
        assert not house.home.path.exists()
        real = stack.enter_context(BridgeProcess(house.home, house.project))
        probe = stack.enter_context(BridgeProcess(house.home, house.project))
        real.initialize()
        commit = real.send_call("memory.commit_episode", role="user", content="the only one")
        assert probe.result(probe.send("server/discover"))["supportedVersions"]
        probe.process.kill()
        assert real.content(commit)["seq"] == 1
        assert [turn["seq"] for turn in house.must("episodes")] == [1]
        assert real.close_input() == 0
