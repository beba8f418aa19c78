"""One harness's life with the memory: it commits and pins, ends, and is run again to recall."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.cli.harnesses import bridge_command
from tests.hosts.harnesses import FOLDER, Harness, Place, Ran
from tests.hosts.scripted_model import Asked, ScriptedModel, Step
from tests.hosts.wire import Wire, read_wire, tapped
from tests.integration.house import House
from tests.waiting import until

__all__ = ["LAST_TURN", "RULE", "TOOLS", "TURN", "Run", "Seen", "play"]

TURN = 'The valve “Ø 7½” is made of zirconium: C:\\new\\table, "quoted"\n  記憶 🙂, and no end'
RULE = "Never ship a valve without its zirconium certificate, says Zoë."
LAST_TURN = "The last thing that was said before the power went."
TOOLS = ("memory_commit_episode", "memory_pin", "memory_recall", "sakur4_status")

_END_SECONDS = 5.0
_EPISODE = {"role": "user", "content": TURN}

_Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Run:
    """One process of the harness, from its start to its end."""

    ran: Ran
    asked: Sequence[Asked]
    outside: Sequence[str]
    unknown: Sequence[str]
    fronts: frozenset[int]
    """Fronts that were there while the model was asked."""
    left: frozenset[int]
    """Processes of ours that were still there after it ended, but for the services."""

    def offered(self) -> list[str]:
        """Our tools as the model saw them, a namespace before a colon."""
        return sorted(
            {
                shown
                for asked in self.asked
                for one in asked.offered
                if "muniment"
                in (shown := f"{one.namespace}:{one.name}" if one.namespace else one.name)
            }
        )

    def returned(self, place: int) -> str:
        """What the model was given for its call of that number, counted from the end."""
        return self.asked[-1].returned[place].text


@dataclass(frozen=True)
class Seen:
    """All that was seen of a harness."""

    harness: Harness
    project: Path
    first: Run
    second: Run
    third: Run
    """Through the tap."""
    killed: Run
    """Killed when it had been answered that LAST_TURN is committed."""
    wire: Wire
    episodes: Sequence[Mapping[str, Any]]
    pins: Sequence[Mapping[str, Any]]
    contents: Sequence[bytes]
    """Of the episodes."""


def play(harness: Harness, house: House) -> Seen:
    """Play all of it, in a house that was never up: the first call starts the services."""
    subprocess.run(["git", "init", "--quiet", house.project], check=True)
    words = house.must("doctor")["registrations"][harness.registration]
    status: _Call = ("sakur4_status", {})
    written = _run(
        harness,
        house,
        words,
        "writes",
        (status, ("memory_commit_episode", _EPISODE), ("memory_pin", {"content": RULE})),
    )
    recalled = _run(
        harness, house, words, "recalls", (("memory_recall", {"query": "zirconium"}), status)
    )
    command = bridge_command()
    assert command is not None
    records = house.project.parent / "wire"
    instead = words.replace(str(command), str(tapped(command, records)))
    listened = _run(harness, house, instead, "looks", (status,))
    last: _Call = ("memory_commit_episode", {**_EPISODE, "content": LAST_TURN})
    killed = _run(harness, house, words, "dies", (last, status), kill=True)
    episodes, pins = house.must("episodes"), house.must("pins")
    seen = Seen(
        harness,
        house.project,
        *(written, recalled, listened, killed),
        read_wire(records),
        *(episodes, pins),
        [house.run("show", one["episode_id"]).out for one in episodes],
    )
    _keep(seen)
    return seen


def _run(
    harness: Harness,
    house: House,
    words: str,
    name: str,
    calls: Sequence[_Call],
    *,
    kill: bool = False,
) -> Run:
    """One process of the harness, in a home of its own where nothing is remembered.

    Where it is to be killed, that is when its first call has been answered.
    """
    home = house.project.parent / name
    (home / "tmp").mkdir(parents=True)
    there: set[int] = set()

    def look(results: int) -> None:
        there.update(_of_home(house))
        if kill and results == len(harness.prelude) + 1:
            for pid in there - set(house.pids()):
                os.kill(_parent(pid), signal.SIGKILL)

    script = [
        *harness.prelude,
        *(Step(harness.spelled(tool), arguments) for tool, arguments in calls),
    ]
    with ScriptedModel(
        script,
        f"It {name} no more.",
        name=f"{harness.name}_{name}",
        on_asked=look,
    ) as model:
        place = Place(home, house.project, model.url, words)
        ran = harness.run(place, "Keep what I say in the memory.")
    shown = [[one.name for one in asked.offered] for asked in model.asked]
    assert there, f"no front was seen while the model was asked: {ran}, {shown}"
    services = set(house.pids())
    return Run(
        *(ran, model.asked, model.outside, model.unknown),
        frozenset(there - services),
        _left_over(house, services),
    )


def _left_over(house: House, services: set[int]) -> frozenset[int]:
    try:
        until(lambda: not _of_home(house) - services, "fronts have ended", seconds=_END_SECONDS)
    except AssertionError:
        return frozenset(_of_home(house) - services)
    return frozenset()


def _of_home(house: House) -> set[int]:
    """Every process that was told of this home: fronts, and the services."""
    told = subprocess.run(
        ["ps", "axeww", "-o", "pid=,command="],
        capture_output=True,
        check=True,
        text=True,
        errors="replace",
    )
    mark = f"MUNIMENT_HOME={house.home.path}"
    return {int(line.split()[0]) for line in told.stdout.splitlines() if mark in line}


def _parent(pid: int) -> int:
    told = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=True, text=True
    )
    return int(told.stdout)


def _keep(seen: Seen) -> None:
    """Write down what documents say of a harness, for who brings them up to date."""
    folder = FOLDER / "seen"
    folder.mkdir(exist_ok=True)
    runs = (seen.first, seen.second, seen.third)
    told = {
        "client": seen.wire.client,
        "revisions": seen.wire.revisions,
        "methods": seen.wire.methods,
        "call_meta": seen.wire.call_meta,
        "offered": seen.first.offered(),
        "sessions": [run.ran.session for run in runs],
        "status": [seen.first.returned(-3), seen.second.returned(-1)],
        "recall": seen.second.returned(-2),
        "fronts": [len(run.fronts) for run in runs],
    }
    (folder / f"{seen.harness.name}.json").write_text(
        json.dumps(told, ensure_ascii=False, indent=2)
    )
