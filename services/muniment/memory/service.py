"""The memory contract over gRPC: translation, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from muniment.kit import faults
from muniment.kit.bursts import Bursts
from muniment.kit.clock import Clock, timestamp
from muniment.kit.counting import TOKENIZER
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.ids import IdMaker
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.interceptors import call_context
from muniment.kit.limits import CHUNK_BYTES
from muniment.kit.names import check_name
from muniment.kit.store import Once, Reader, Store, Writer
from muniment.kit.store.bell import CommitBell
from muniment.memory import episodes, pins, projects
from muniment.memory.counts import Serving
from muniment.memory.exporting import Export
from muniment.memory.importing import Import
from muniment.memory.limits import (
    EPISODE_LIMIT_BYTES,
    LIST_PAGE_EPISODES,
)
from muniment.memory.purge import Purger
from muniment.memory.recall import recall
from muniment.v1 import maintenance_pb2, memory_pb2, memory_pb2_grpc

__all__ = ["MemoryServicer"]

_PREPARED_AT_ONCE_CHARACTERS = 2048
"""An episode up to this length is prepared sooner than a thread is found that would do it."""

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
    bursts: Bursts = field(default_factory=Bursts, kw_only=True)
    """Through which the writer's answers come."""
    purger: Purger
    bell: CommitBell = field(kw_only=True)
    """Rings after each commit."""
    serving: Serving = field(default_factory=Serving, kw_only=True)
    """Whose counts are exact."""

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
        if len(request.content) <= _PREPARED_AT_ONCE_CHARACTERS:
            new = episodes.prepare_episode(context, request)
        else:
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
            content = episodes.read_content(reader, episode.seq).encode()
            return self.serving.counts(reader).show(episode), content

        episode, content = await self._read(read)
        yield memory_pb2.ReadEpisodeResponse(episode=episode)
        for start in range(0, len(content), CHUNK_BYTES):
            yield memory_pb2.ReadEpisodeResponse(content_chunk=content[start : start + CHUNK_BYTES])

    async def ListEpisodes(
        self, request: memory_pb2.ListEpisodesRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.ListEpisodesResponse]:
        project_id = projects.required_project(call_context())
        session_id = request.session_id if request.HasField("session_id") else None
        after, left, is_first = request.after_seq, request.limit or None, True

        def page(reader: Reader) -> episodes.EpisodePage:
            size = LIST_PAGE_EPISODES if left is None else min(LIST_PAGE_EPISODES, left)
            found = episodes.list_episodes(reader, project_id, session_id, after, size)
            counts = self.serving.counts(reader)
            for episode in found.episodes:
                counts.show(episode)
            return found

        while left != 0:
            found = await self._read(page)
            if found.last_seq is None and not is_first:
                return
            yield memory_pb2.ListEpisodesResponse(
                episodes=found.episodes,
                tampered_seqs=found.tampered_seqs,
                tampered_entries=found.tampered_entries if is_first else 0,
                doubts=found.doubts if is_first else (),
                notes=found.notes if is_first else (),
            )
            if found.last_seq is None:
                return
            after, is_first = found.last_seq, False
            left = None if left is None else left - found.size

    async def Pin(self, request: memory_pb2.PinRequest, context: _Call) -> memory_pb2.PinResponse:
        call = call_context()

        def change(writer: Writer) -> memory_pb2.PinResponse:
            response = pins.add_pin(writer, self.clock, self.ids, call, request)
            self.serving.counts(writer).show_cost(response.pin)
            return response

        return await self._mutate(request, memory_pb2.PinResponse, change)

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

        def read(reader: Reader) -> memory_pb2.ListPinsResponse:
            found = pins.list_pins(reader, project_id, session_id)
            counts = self.serving.counts(reader)
            for pin in found.pins:
                counts.show_cost(pin)
            return found

        return await self._read(read)

    async def WatchPins(
        self, request: memory_pb2.WatchPinsRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.WatchPinsResponse]:
        after = request.after if request.HasField("after") else None
        is_first = True
        async for _ in self.bell.rings():
            behind = True
            while behind:
                found = await self._read(partial(pins.changed_pins, after=after))
                behind = after is not None and found.position != after and not found.missed
                if is_first or found.project_ids or found.missed:
                    yield found
                after, is_first = found.position, False

    async def Recall(
        self, request: memory_pb2.RecallRequest, context: _Call
    ) -> memory_pb2.RecallResponse:
        call = call_context()

        def read(reader: Reader) -> memory_pb2.RecallResponse:
            found = recall(reader, self.index, call, request)
            counts = self.serving.counts(reader)
            for hit in found.hits:
                if hit.HasField("pin"):
                    counts.show_cost(hit.pin)
                elif hit.episode.HasField("tokens"):
                    counts.show(hit.episode)
            return found

        return await self._read(read)

    async def GetStats(
        self, request: memory_pb2.GetStatsRequest, context: _Call
    ) -> memory_pb2.GetStatsResponse:
        project_id = projects.required_project(call_context())
        stats = await self._read(lambda reader: projects.count_here(reader, project_id))
        stats.tokenizer = TOKENIZER
        progress = self.serving.progress
        if progress is not None:
            # What was committed or purged since is not in it.
            stats.tokenizer = progress.tokenizer
            left = min(progress.uncountable_episodes, stats.episodes)
            exact = min(progress.exact_episodes, stats.episodes - left)
            stats.uncountable_episodes, stats.exact_episodes = left, exact
            stats.episodes_to_count = stats.episodes - left - exact
        return stats

    async def ListProjects(
        self, request: memory_pb2.ListProjectsRequest, context: _Call
    ) -> memory_pb2.ListProjectsResponse:
        return await self._read(projects.list_projects)

    async def Export(
        self, request: memory_pb2.ExportRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.ExportResponse]:
        project_id = None if request.all_projects else projects.required_project(call_context())
        exporter, now = f"muniment {version('muniment')}", timestamp(self.clock)
        export = await self._read(
            lambda reader: Export(reader, project_id, exporter, now, self.serving)
        )
        while not export.done:
            page = await self._read(export.page)
            for start in range(0, len(page), CHUNK_BYTES):
                yield memory_pb2.ExportResponse(chunk=page[start : start + CHUNK_BYTES])
            progress = _progress("exporting episodes", export.episodes, export.total)
            yield memory_pb2.ExportResponse(progress=progress)
        line, result = await self._read(export.end)
        yield memory_pb2.ExportResponse(chunk=line)
        yield memory_pb2.ExportResponse(result=result)

    async def Import(
        self, request_iterator: AsyncIterator[memory_pb2.ImportRequest], context: _Call
    ) -> AsyncIterator[memory_pb2.ImportResponse]:
        written_by = f"{call_context().caller} {memory_pb2.ImportRequest.DESCRIPTOR.full_name}"
        remarks: list[memory_pb2.ImportRemark] = []
        taking: Import | None = None
        done = 0

        def begin(*, revive: bool) -> Import:
            return Import(self.store, self.clock, written_by, remarks.append, revive=revive)

        async for part in request_iterator:
            taking = taking or begin(revive=part.revive)
            await asyncio.to_thread(taking.take, part.chunk)
            done += len(part.chunk)
            for remark in remarks:
                yield memory_pb2.ImportResponse(remark=remark)
            remarks.clear()
            yield memory_pb2.ImportResponse(progress=_progress("importing", done, 0))
        result = await asyncio.to_thread((taking or begin(revive=False)).end)
        for remark in remarks:
            yield memory_pb2.ImportResponse(remark=remark)
        yield memory_pb2.ImportResponse(result=result)

    async def PurgeProject(
        self, request: memory_pb2.PurgeProjectRequest, context: _Call
    ) -> AsyncIterator[memory_pb2.PurgeProjectResponse]:
        call = call_context()
        if not check_name("project_id", request.project_id):
            raise InvalidArgumentError(
                "is empty",
                reason="PROJECT_MISSING",
                field="project_id",
                fix="`muniment projects` lists the projects that this host knows",
            )
        parts: asyncio.Queue[maintenance_pb2.Progress | None] = asyncio.Queue()
        later = asyncio.get_running_loop().call_soon_threadsafe

        def report(step: str, done: int, total: int) -> None:
            later(parts.put_nowait, _progress(step, done, total))

        # It goes on when the caller goes away.
        purging = self.purger.purge(call, request, report)
        purging.add_done_callback(lambda _: later(parts.put_nowait, None))
        while (part := await parts.get()) is not None:
            yield memory_pb2.PurgeProjectResponse(progress=part)
        result = await asyncio.wrap_future(purging)
        yield memory_pb2.PurgeProjectResponse(result=result)

    async def _mutate(
        self, request: Message, response_type: type[R], change: Callable[[Writer], R]
    ) -> R:
        context = call_context()
        once = Once(context, request, response_type, change, self.clock)
        future = self.store.write(
            once.run,
            written_by=f"{context.caller} {request.DESCRIPTOR.full_name}",
            remember=once.remember,
        )
        response = await self.bursts.outcome(future)
        faults.reach("memory.before_reply")
        return response

    async def _read(self, look: Callable[[Reader], T]) -> T:
        def run() -> T:
            with self.store.read() as reader:
                return look(reader)

        return await self._in_thread(run)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.readers, work)


def _progress(step: str, done: int, total: int) -> maintenance_pb2.Progress:
    return maintenance_pb2.Progress(step=step, done=done, total=total)
