"""Every named fault point of the source is visited by some test, and one more is visited here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.kit.context import CallContext
from muniment.kit.faults import VARIABLE
from muniment.kit.paths import Home
from muniment.v1 import memory_pb2
from muniment.workflows import episodes
from muniment.workflows.clients import open_clients
from tests.support.crashes import fault_points
from tests.support.homes import a_home, clean_environment

FOLDER = Path(__file__).resolve().parent
DEADLINE_SECONDS = 60.0


def test_every_point_is_visited_somewhere() -> None:
    texts = [path.read_text() for path in FOLDER.glob("test_*.py")]
    # The machine beside the model dies at every point of the store itself, whatever it is called.
    enumerated = fault_points("services/muniment/kit/store/store.py")
    assert any('fault_points("services/muniment/kit/store/store.py")' in text for text in texts)
    unvisited = {
        point
        for point in fault_points() - enumerated
        if not any(f'"{point}"' in text for text in texts)
    }
    assert not unvisited


@contextmanager
def memory_process(home: Home, armed: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The memory service in a process that dies where a point is armed."""
    environment = clean_environment() | {
        "MUNIMENT_HOME": str(home.path),
        "MUNIMENT_KEY_FOLDER": str(home.path.with_name("keys")),
        VARIABLE: str(armed),
    }
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "muniment.memory"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_reply_that_was_never_sent_is_the_reply_to_the_next_try(tmp_path: Path) -> None:
    point = tmp_path / "memory.before_reply"
    point.touch()
    context = CallContext(
        project_id="proj_0000000000000001", session_id="s", caller="test", idempotency_key="k"
    )
    request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content="a turn")
    with a_home() as home:
        async with open_clients(home) as clients:
            with memory_process(home, tmp_path) as process:
                # The client waits for the service to come back, and sends the same key again.
                commit = asyncio.create_task(
                    episodes.commit_episode(
                        clients, context, request, deadline_seconds=DEADLINE_SECONDS
                    )
                )
                code = await asyncio.to_thread(process.wait, DEADLINE_SECONDS)
            assert not point.exists(), "the point was never visited"
            assert code < 0
            assert not commit.done()
            with memory_process(home, tmp_path):
                episode = await commit
                listed = [one async for one in episodes.list_episodes(clients, context)]
    assert [one.episode_id for one in listed] == [episode.episode_id]
