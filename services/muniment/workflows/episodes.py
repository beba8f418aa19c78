"""Committing and reading episodes, whatever their size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

from muniment.kit.channels import BULK_SECONDS, WRITE_SECONDS
from muniment.kit.context import CallContext
from muniment.kit.limits import CHUNK_BYTES
from muniment.v1 import memory_pb2
from muniment.workflows.clients import Clients

__all__ = ["commit_episode", "list_episodes", "read_episode"]


async def commit_episode(
    clients: Clients,
    context: CallContext,
    request: memory_pb2.CommitEpisodeRequest,
    *,
    deadline_seconds: float = WRITE_SECONDS,
) -> memory_pb2.Episode:
    """Append a turn; on return it is on disk and recall sees it."""
    content = request.content.encode()
    if len(content) <= CHUNK_BYTES:
        response = await clients.to_memory.unary(
            clients.memory.CommitEpisode, request, context, deadline_seconds
        )
        return response.episode
    header = memory_pb2.CommitEpisodeRequest()
    header.CopyFrom(request)
    header.ClearField("content")

    def parts() -> Iterator[memory_pb2.CommitLargeEpisodeRequest]:
        yield memory_pb2.CommitLargeEpisodeRequest(header=header)
        for start in range(0, len(content), CHUNK_BYTES):
            chunk = content[start : start + CHUNK_BYTES]
            yield memory_pb2.CommitLargeEpisodeRequest(content_chunk=chunk)

    large = await clients.to_memory.client_stream(
        clients.memory.CommitLargeEpisode, parts, context, max(deadline_seconds, BULK_SECONDS)
    )
    return large.episode


async def read_episode(
    clients: Clients, context: CallContext, episode_id: str
) -> tuple[memory_pb2.Episode, str]:
    """One episode of the project: its description and its content, verbatim."""
    description = memory_pb2.Episode()
    content = bytearray()
    async for part in clients.to_memory.server_stream(
        clients.memory.ReadEpisode,
        memory_pb2.ReadEpisodeRequest(episode_id=episode_id),
        context,
        BULK_SECONDS,
    ):
        if part.HasField("episode"):
            description.CopyFrom(part.episode)
        content += part.content_chunk
    return description, content.decode()


async def list_episodes(
    clients: Clients,
    context: CallContext,
    *,
    session_id: str | None = None,
    limit: int = 0,
    tell: Callable[[memory_pb2.ListEpisodesResponse], None] = lambda page: None,
) -> AsyncIterator[memory_pb2.Episode]:
    """The project's or the session's episodes in order of commit; all of them for limit 0.

    `tell` takes each page, which also says what cannot be listed.
    """
    async for page in clients.to_memory.server_stream(
        clients.memory.ListEpisodes,
        memory_pb2.ListEpisodesRequest(session_id=session_id, limit=limit),
        context,
        BULK_SECONDS,
    ):
        tell(page)
        for episode in page.episodes:
            yield episode
