"""Services that are killed by SIGKILL while they work, and what has to be true afterwards."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from muniment.cli.services import list_services
from muniment.kit.errors import UnavailableError
from muniment.kit.paths import Home
from tests.support.fronts import BridgeProcess
from tests.support.stored import stored_turns
from tests.waiting import until

__all__ = ["Agent", "Killer", "agents", "kill", "require_each_once_and_in_order"]

_DEADLINE_SECONDS = 120.0


class Agent:
    """A harness that commits turns of its own through a bridge of its own."""

    def __init__(self, bridge: BridgeProcess, number: int) -> None:
        self.bridge = bridge
        self._number = number
        self._commits: list[int] = []

    def commit(self) -> int:
        """Commit the next turn, without waiting; returns the request's id."""
        content = self._turn(len(self._commits))
        self._commits.append(
            self.bridge.send_call("memory.commit_episode", role="user", content=content)
        )
        return self._commits[-1]

    def commit_one_by_one(self, count: int) -> None:
        """Commit so many turns, each when the one before it was answered."""
        for _ in range(count):
            self.bridge.answer(self.commit())

    def acknowledged(self) -> list[tuple[str, int, str]]:
        """Id, place and content of every commit in its order; none may have failed."""
        answers = map(self.bridge.content, self._commits)
        return [
            (answer["episode_id"], answer["seq"], self._turn(number))
            for number, answer in enumerate(answers)
        ]

    def _turn(self, number: int) -> str:
        return f"agent{self._number} turn{number}"


@contextmanager
def agents(home: Home, folder: Path, count: int) -> Iterator[list[Agent]]:
    """So many agents in the project of that folder, each with a bridge."""
    with ExitStack() as stack:
        bridges = [BridgeProcess(home, folder, name=f"agent{number}") for number in range(count)]
        for bridge in bridges:
            stack.enter_context(bridge)
        yield [Agent(bridge, number) for number, bridge in enumerate(bridges)]


def require_each_once_and_in_order(home: Home, folder: Path, present: Sequence[Agent]) -> None:
    """Demand that the project holds what these agents were told, and nothing else.

    Raises:
        AssertionError: A turn is missing, is there twice or out of its agent's order, or a commit
            failed.
    """
    told = [agent.acknowledged() for agent in present]
    stored = stored_turns(home, folder)
    by_id = {turn.episode_id: (turn.episode_id, turn.seq, turn.content) for turn in stored}
    for one in told:
        assert one == [by_id.get(episode_id) for episode_id, _, _ in one]
        seqs = [seq for _, seq, _ in one]
        assert seqs == sorted(seqs)
    assert len(stored) == sum(map(len, told))


def kill(home: Home, service: str, spared: Collection[int] = ()) -> int:
    """Kill the service's process, also one that is only starting; returns its id.

    Args:
        home: Whose service.
        service: Its name.
        spared: Processes that were killed before, which the supervisor may still list.
    """

    def find() -> int | None:
        try:
            found = [one.pid for one in list_services(home) if one.name == service]
        except UnavailableError:
            return None
        return found[0] if found[0] and found[0] not in spared else None

    pid = until(find, f"a process of {service} is there to be killed", seconds=60)
    os.kill(pid, signal.SIGKILL)
    return pid


class Killer:
    """Kills a service whenever so many requests of the agents were answered."""

    def __init__(
        self, home: Home, service: str, moments: Sequence[int], present: Sequence[Agent]
    ) -> None:
        """Kill at these moments.

        Args:
            home: Whose service.
            service: Its name.
            moments: Numbers of answers, rising.
            present: Whose answers are counted.
        """
        self.killed: list[int] = []
        """The processes that were."""
        self._home = home
        self._service = service
        self._moments = moments
        self._answers = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="killer")
        for agent in present:
            agent.bridge.on_answer = self._count

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.join()

    def _count(self) -> None:
        with self._changed:
            self._answers += 1
            self._changed.notify_all()

    def _run(self) -> None:
        for moment in self._moments:
            with self._changed:
                while self._answers < moment:
                    if not self._changed.wait(_DEADLINE_SECONDS):
                        return
            self.killed.append(kill(self._home, self._service, self.killed))
