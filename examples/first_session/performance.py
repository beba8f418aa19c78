"""The performance: plays the steps over MCP, and keeps what it sees for the verdict."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from examples.first_session import answers, checks, script
from examples.first_session.bridge import Bridge, Timed, open_bridge
from examples.first_session.stage import Batch, Stage
from examples.first_session.workspace import Workspace

__all__ = ["Play", "PlayError"]


class PlayError(Exception):
    """The session cannot go on."""


@dataclass(frozen=True)
class _Kill:
    service: str
    pid: int


class Play:
    """One performance of the session, and what was seen during it."""

    def __init__(self, steps: Sequence[script.Step], workspace: Workspace, stage: Stage) -> None:
        self._steps = steps
        self._workspace = workspace
        self._stage = stage
        self._project = ""
        self._turns: dict[int, checks.Acknowledged] = {}
        self._corrections: list[checks.Correction] = []
        self._pins: list[str] = []
        self._anchors: str | None = None
        self._expectations: list[checks.Check] = []
        self._answers: list[tuple[int, list[answers.Hit]]] = []
        self._batch = Batch()
        self._struck: _Kill | None = None
        self._kills: list[tuple[_Kill, float | None]] = []
        self._times: dict[str, list[float]] = {}
        self._at = "the beginning"

    @property
    def at(self) -> str:
        """Where in the session it is, in words."""
        return self._at

    async def run(self) -> list[checks.Check]:
        """Play every step, and return what held."""
        for number, part in enumerate(_sessions(self._steps), 1):
            self._at = f"the start of session {number}"
            async with open_bridge(self._workspace) as bridge:
                await self._arrive(bridge, number)
                for step in part:
                    self._at = f"step {step.step}"
                    await self._play(bridge, step)
                self._close_batch()
        self._at = "the final checks"
        return await self._verdict()

    async def _arrive(self, bridge: Bridge, number: int) -> None:
        """Do what a harness does first: tools, preamble, status; then read the pinned rules."""
        with self._stage.waiting("Starting the services of this home …"):
            tools = await bridge.tools()
            first_answer = bridge.age_milliseconds
            preamble = await bridge.prompt("sakur4_system_preamble")
            status = await bridge.call("sakur4.status", {})
            ready = bridge.age_milliseconds
        self._project = answers.field(status.answer, "project_id", str)
        self._time("from spawn to the list of tools", first_answer)
        self._time(f"from spawn to the status, session {number}", ready)
        # Whether they ran before is only known of a home that was made for this.
        begun = number == 1 and self._workspace.owns_home
        included = ", the start of the services included" if begun else ""
        self._stage.heading(f"Session {number}")
        facts = [
            ("bridge", f"{bridge.server}, first answer after {first_answer:.0f} ms"),
            ("project", f"{self._project}, status after {ready:.0f} ms{included}"),
        ]
        if number == 1:
            facts[1:1] = [
                ("tools", ", ".join(tools)),
                ("preamble", f"{len(preamble.splitlines())} lines on when to call them"),
            ]
        self._stage.facts(facts)
        if self._pins:
            uri = f"sakur4://anchors/{self._project}"
            self._anchors = await bridge.resource(uri)
            self._stage.say()
            self._stage.anchors(uri, self._anchors)

    async def _play(self, bridge: Bridge, step: script.Step) -> None:
        if not isinstance(step, script.Commit):
            self._close_batch()
        match step:
            case script.Commit():
                await self._commit(bridge, step)
            case script.Pin():
                await self._pin(bridge, step)
            case script.Recall():
                await self._recall(bridge, step)
            case script.Impact():
                await self._impact(bridge, step)
            case script.Kill():
                await self._kill(step)
            case script.Narrate():
                self._stage.narrate(step.text)
            case script.NewSession():
                raise AssertionError("the session was not split")

    async def _commit(self, bridge: Bridge, step: script.Commit) -> None:
        arguments = {"role": step.role, "content": step.content}
        if step.tool_name is not None:
            arguments["tool_name"] = step.tool_name
        corrected = None if step.corrects is None else self._turns[step.corrects]
        if corrected is not None:
            arguments["corrects"] = corrected.episode_id
        timed = await bridge.call("memory.commit_episode", arguments)
        turn = answers.committed(timed.answer)
        self._turns[step.step] = checks.Acknowledged(step.step, turn.episode_id, step.content)
        if corrected is not None:
            if turn.supersedes != corrected.episode_id:
                raise PlayError("memory.commit_episode did not say which turn it supersedes")
            self._corrections.append(
                checks.Correction(step.step, corrected.episode_id, turn.episode_id, step.content)
            )
        if self._met_kill(f"The {step.role}'s turn {turn.seq}", timed):
            return
        self._time("memory.commit_episode", timed.milliseconds)
        self._batch.add(step.role, step.tool_name, turn.seq, turn.token_count, timed.milliseconds)

    async def _pin(self, bridge: Bridge, step: script.Pin) -> None:
        timed = await bridge.call("memory.pin", {"content": step.content, "kind": step.kind})
        pin = answers.pinned(timed.answer)
        self._pins.append(step.content)
        if not self._met_kill("The pin", timed):
            self._time("memory.pin", timed.milliseconds)
        self._stage.pinned(pin.kind, step.content, pin.token_cost)

    async def _recall(self, bridge: Bridge, step: script.Recall) -> None:
        timed = await bridge.call("memory.recall", {"query": step.query, "k": checks.TOP_HITS})
        hits = answers.recalled(timed.answer)
        if not self._met_kill("The question", timed):
            self._time("memory.recall", timed.milliseconds)
        self._stage.recalled(step.query, step.expect, step.why, hits, timed.milliseconds)
        self._answers.append((step.step, hits))
        rank = checks.rank_of(step.expect, hits)
        detail = f"{step.expect!r} is not in the first {checks.TOP_HITS} hits (step {step.step})"
        if rank is not None:
            detail = f"{step.expect!r} in hit {rank}"
        self._expectations.append(checks.Check(step.query, rank is not None, detail))

    async def _impact(self, bridge: Bridge, step: script.Impact) -> None:
        arguments = {"qualified_name": step.symbol}
        timed = await bridge.call("code.impact_of_change", arguments)
        found = answers.dependents(timed.answer)
        self._time("code.impact_of_change", timed.milliseconds)
        self._stage.reached(step.symbol, step.why, found, timed.milliseconds)
        self._expectations.append(checks.reached(step.symbol, step.expect, found))

    async def _kill(self, step: script.Kill) -> None:
        process = await asyncio.to_thread(self._workspace.process, step.service)
        if process is None or not isinstance(process.get("pid"), int):
            raise PlayError(f"`muniment ps` shows no running {step.service}")
        self._struck = _Kill(step.service, process["pid"])
        os.kill(self._struck.pid, signal.SIGKILL)
        self._stage.killed(self._struck.service, self._struck.pid)

    def _met_kill(self, what: str, timed: Timed[dict[str, Any]]) -> bool:
        """Note whether this call was the first after a kill."""
        if self._struck is None:
            return False
        self._kills.append((self._struck, timed.milliseconds))
        self._struck = None
        self._time("the call under the kill", timed.milliseconds)
        self._stage.met_the_kill(what, timed.milliseconds)
        return True

    def _time(self, what: str, milliseconds: float) -> None:
        self._times.setdefault(what, []).append(milliseconds)

    def _close_batch(self) -> None:
        self._stage.committed(self._batch)
        self._batch = Batch()

    async def _verdict(self) -> list[checks.Check]:
        if self._struck is not None:
            self._kills.append((self._struck, None))
        stored = await asyncio.to_thread(self._workspace.episodes)
        processes = {
            row.get("name"): row for row in await asyncio.to_thread(self._workspace.processes)
        }
        self._stage.heading("How long it took")
        self._stage.timings(list(self._times.items()))
        return [
            *self._expectations,
            checks.exactly_once(list(self._turns.values()), stored),
            *(
                checks.came_back(kill.service, kill.pid, processes.get(kill.service), milliseconds)
                for kill, milliseconds in self._kills
            ),
            checks.pins_survived(self._pins, self._anchors),
            checks.correction_surfaced(self._corrections, self._answers),
        ]


def _sessions(steps: Sequence[script.Step]) -> list[list[script.Step]]:
    parts: list[list[script.Step]] = [[]]
    for step in steps:
        if isinstance(step, script.NewSession):
            parts.append([])
        else:
            parts[-1].append(step)
    return parts
