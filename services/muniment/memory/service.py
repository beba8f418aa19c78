"""The memory contract over gRPC: translation, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from muniment.kit import faults
from muniment.kit.clock import Clock
from muniment.kit.counting import TOKENIZER
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.ids import IdMaker
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.interceptors import call_context
from muniment.kit.limits import CHUNK_BYTES
from muniment.kit.store import Reader, Store, Writer, once
from muniment.memory import episodes, pins, projects
from muniment.memory.limits import (
    EPISODE_LIMIT_BYTES,
    LIST_PAGE_EPISODES,
)
from muniment.memory.recall import recall
from muniment.memory.schema import EPISODES, PIN_SCOPES, PROJECTS
from muniment.v1 import memory_pb2, memory_pb2_grpc

__all__ = ["MemoryServicer"]

R = TypeVar("R", bound=Message)
T = TypeVar("T")
_Call = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True)
class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):
    """Serves the contract from one store and its index."""

    store: Store
    index: LexicalIndex
    clock: Clock
    ids: IdMaker
    readers: Executor
    """Threads for what reads."""

    async def CommitEpisode(
        self, request: memory_pb2.CommitEpisodeRequest, context: _Call
    ) -> memory_pb2.CommitEpisodeResponse:
        if len(request.content.encode()) > CHUNK_BYTES:
            raise InvalidArgumentError(
                f"is longer than {CHUNK_BYTES} bytes",
                reason="CONTENT_TOO_LONG",
                field="content",
                fix="send it in chunks with CommitLargeEpisode",
            )
        episode = await self._commit(request)
        return memory_pb2.CommitEpisodeResponse(episode=episode)

    async def CommitLargeEpisode(
        self, request_iterator: AsyncIterator[memory_pb2.CommitLargeEpisodeRequest], context: _Call
    ) -> memory_pb2.CommitLargeEpisodeResponse:
        request = memory_pb2.CommitEpisodeRequest()
        content = bytearray()
        async for part in request_iterator:
            if part.HasField("header"):
                request.CopyFrom(part.header)
            content += part.content_chunk
            if len(content) > EPISODE_LIMIT_BYTES:
                raise InvalidArgumentError(
                    f"is longer than {EPISODE_LIMIT_BYTES} bytes",
                    reason="CONTENT_TOO_LONG",
                    field="content",
                    fix="commit it in parts",
                )
        try:
            request.content = content.decode()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"is not UTF-8 at byte {error.start}",
                reason="CONTENT_NOT_UTF8",
                field="content",
                fix="send text",
            ) from error
        return memory_pb2.CommitLargeEpisodeResponse(episode=await self._commit(request))

    async def _commit(self, request: memory_pb2.CommitEpisodeRequest) -> memory_pb2.Episode:
        context = call_context()
        new = await self._in_thread(lambda: episodes.prepare_episode(context, request))

        def change(writer: Writer) -> memory_pb2.CommitEpisodeResponse:
            episode = episodes.append_episode(writer, self.clock, self.ids, context, new)
            return memory_pb2.CommitEpisodeResponse(episode=episode)

        response = await self._mutate(request, memory_pb2.CommitEpisodeResponse, change)
        return response.episode

    async def ReadEpisode(
        self, request: memory_pb2.ReadEpisodeRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.ReadEpisodeResponse]:
        project_id = projects.required_project(call_context())

        def read(reader: Reader) -> tuple[memory_pb2.Episode, bytes]:
            episode = episodes.known_episode(reader, project_id, request.episode_id)
            return episode, episodes.read_content(reader, episode.seq).encode()

        episode, content = await self._read(read)
        yield memory_pb2.ReadEpisodeResponse(episode=episode)
        for start in range(0, len(content), CHUNK_BYTES):
            yield memory_pb2.ReadEpisodeResponse(content_chunk=content[start : start + CHUNK_BYTES])

    async def ListEpisodes(
        self, request: memory_pb2.ListEpisodesRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.ListEpisodesResponse]:
        project_id = projects.required_project(call_context())
        session_id = request.session_id if request.HasField("session_id") else None
        after, left = request.after_seq, request.limit or None

        def page(reader: Reader) -> list[memory_pb2.Episode]:
            size = LIST_PAGE_EPISODES if left is None else min(LIST_PAGE_EPISODES, left)
            return episodes.list_episodes(reader, project_id, session_id, after, size)

        while left != 0 and (found := await self._read(page)):
            yield memory_pb2.ListEpisodesResponse(episodes=found)
            after = found[-1].seq
            left = None if left is None else left - len(found)

    async def Pin(self, request: memory_pb2.PinRequest, context: _Call) -> memory_pb2.PinResponse:
        call = call_context()
        return await self._mutate(
            request,
            memory_pb2.PinResponse,
            lambda writer: pins.add_pin(writer, self.clock, self.ids, call, request),
        )

    async def Unpin(
        self, request: memory_pb2.UnpinRequest, context: _Call
    ) -> memory_pb2.UnpinResponse:
        call = call_context()
        return await self._mutate(
            request,
            memory_pb2.UnpinResponse,
            lambda writer: pins.remove_pin(writer, self.clock, call, request.pin_id),
        )

    async def ListPins(
        self, request: memory_pb2.ListPinsRequest, context: _Call
    ) -> memory_pb2.ListPinsResponse:
        project_id = projects.required_project(call_context())
        session_id = request.session_id if request.HasField("session_id") else None
        return await self._read(lambda reader: pins.list_pins(reader, project_id, session_id))

    async def Recall(
        self, request: memory_pb2.RecallRequest, context: _Call
    ) -> memory_pb2.RecallResponse:
        call = call_context()
        return await self._read(lambda reader: recall(reader, self.index, call, request))

    async def GetStats(
        self, request: memory_pb2.GetStatsRequest, context: _Call
    ) -> memory_pb2.GetStatsResponse:
        project_id = projects.required_project(call_context())

        def count(reader: Reader) -> memory_pb2.GetStatsResponse:
            project = projects.find_project(reader, project_id)
            return memory_pb2.GetStatsResponse(
                episodes=reader.count(EPISODES),
                pins=reader.count(PIN_SCOPES),
                projects=reader.count(PROJECTS),
                project_episodes=project.episodes if project else 0,
                project_pins=project.pins if project else 0,
                tokenizer=TOKENIZER,
            )

        return await self._read(count)

    async def ListProjects(
        self, request: memory_pb2.ListProjectsRequest, context: _Call
    ) -> memory_pb2.ListProjectsResponse:
        found = await self._read(projects.list_projects)
        return memory_pb2.ListProjectsResponse(projects=found)

    async def _mutate(
        self, request: Message, response_type: type[R], change: Callable[[Writer], R]
    ) -> R:
        context = call_context()
        future = self.store.write(
            lambda writer: once(writer, context, request, response_type, change, self.clock)
        )
        response = await asyncio.wrap_future(future)
        faults.reach("memory.before_reply")
        return response

    async def _read(self, look: Callable[[Reader], T]) -> T:
        def run() -> T:
            with self.store.read() as reader:
                return look(reader)

        return await self._in_thread(run)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.readers, work)
