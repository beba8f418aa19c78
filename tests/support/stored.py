"""What a home's memory service holds, read past the bridge."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.context import CallContext
from muniment.kit.errors import UnavailableError
from muniment.kit.identity import resolve_project
from muniment.kit.paths import Home
from muniment.workflows.clients import open_clients
from muniment.workflows.episodes import list_episodes, read_episode
from tests.waiting import until

__all__ = ["Turn", "stored_turns"]


@dataclass(frozen=True)
class Turn:
    """A turn as it is stored."""

    episode_id: str
    session_id: str
    seq: int
    content: str


def stored_turns(home: Home, project: Path) -> list[Turn]:
    """All turns of the folder's project, in order of commit, once the service answers."""

    def read() -> list[Turn] | None:
        try:
            return asyncio.run(_read(home, project))
        except UnavailableError:
            return None

    return until(read, "the memory answers")


async def _read(home: Home, project: Path) -> list[Turn]:
    context = CallContext(project_id=resolve_project(project).project_id, caller="test")
    async with open_clients(home) as clients:
        turns = []
        async for episode in list_episodes(clients, context):
            _, content = await read_episode(clients, context, episode.episode_id)
            turns.append(Turn(episode.episode_id, episode.session_id, episode.seq, content))
    return turns
