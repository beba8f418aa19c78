"""A memory service in the process of the test, and an agent that calls it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import grpc

from muniment.kit.channels import Caller, open_channel
from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.interceptors import interceptors
from muniment.kit.limits import MESSAGE_LIMIT_BYTES
from muniment.kit.metrics import Metrics
from muniment.kit.paths import Home
from muniment.kit.store import Store
from muniment.kit.store.bell import CommitBell
from muniment.memory.counts import Serving
from muniment.memory.service import MemoryServicer
from muniment.v1 import memory_pb2, memory_pb2_grpc
from tests.support.bare_memory import BareMemory, a_bare_memory

__all__ = ["Agent", "Memory", "a_memory"]

DEADLINE_SECONDS = 30.0
USER = memory_pb2.ROLE_USER

# The asynchronous stub is a type only.
Stub: TypeAlias = "memory_pb2_grpc.MemoryServiceAsyncStub"

_keys = itertools.count(1)
_projects = itertools.count(1)


@dataclass(frozen=True)
class Agent:
    """Calls of one session in one project. Every call that writes has a key of its own."""

    stub: Stub
    context: CallContext
    caller: Caller = field(default_factory=lambda: Caller("memory"))

    @property
    def project_id(self) -> str:
        """The project that it works in."""
        return self.context.project_id

    def with_context(self, **fields: Any) -> Agent:
        """An agent that calls from elsewhere: another session, project, root."""
        return replace(self, context=replace(self.context, **fields))

    def _writing(self, key: str | None) -> CallContext:
        return replace(self.context, idempotency_key=f"key-{next(_keys)}" if key is None else key)

    async def commit(
        self,
        content: str,
        *,
        role: memory_pb2.Role.ValueType = USER,
        key: str | None = None,
        **fields: Any,
    ) -> memory_pb2.Episode:
        """Append a turn in one message."""
        request = memory_pb2.CommitEpisodeRequest(role=role, content=content, **fields)
        response = await self.caller.unary(
            self.stub.CommitEpisode, request, self._writing(key), DEADLINE_SECONDS
        )
        return response.episode

    async def commit_large(
        self,
        chunks: Iterable[bytes],
        *,
        role: memory_pb2.Role.ValueType = USER,
        key: str | None = None,
        **fields: Any,
    ) -> memory_pb2.Episode:
        """Append a turn in chunks."""
        header = memory_pb2.CommitEpisodeRequest(role=role, **fields)

        def parts() -> Iterator[memory_pb2.CommitLargeEpisodeRequest]:
            yield memory_pb2.CommitLargeEpisodeRequest(header=header)
            for chunk in chunks:
                yield memory_pb2.CommitLargeEpisodeRequest(content_chunk=chunk)

        response = await self.caller.client_stream(
            self.stub.CommitLargeEpisode, parts, self._writing(key), DEADLINE_SECONDS
        )
        return response.episode

    async def read(self, episode_id: str) -> tuple[memory_pb2.Episode, bytes]:
        """An episode and its content."""
        request = memory_pb2.ReadEpisodeRequest(episode_id=episode_id)
        first, *rest = [
            part
            async for part in self.caller.server_stream(
                self.stub.ReadEpisode, request, self.context, DEADLINE_SECONDS
            )
        ]
        assert first.HasField("episode")
        assert not any(part.HasField("episode") for part in rest)
        return first.episode, first.content_chunk + b"".join(part.content_chunk for part in rest)

    async def pages(self, **fields: Any) -> list[list[memory_pb2.Episode]]:
        """The messages of a listing."""
        request = memory_pb2.ListEpisodesRequest(**fields)
        return [
            list(page.episodes)
            async for page in self.caller.server_stream(
                self.stub.ListEpisodes, request, self.context, DEADLINE_SECONDS
            )
        ]

    async def episodes(self, **fields: Any) -> list[memory_pb2.Episode]:
        """The episodes of a listing."""
        return [episode for page in await self.pages(**fields) for episode in page]

    async def pin(
        self, content: str, *, key: str | None = None, **fields: Any
    ) -> memory_pb2.PinResponse:
        """Pin a rule."""
        request = memory_pb2.PinRequest(content=content, **fields)
        return await self.caller.unary(self.stub.Pin, request, self._writing(key), DEADLINE_SECONDS)

    async def unpin(self, pin_id: str, *, key: str | None = None) -> memory_pb2.PinnedRule:
        """Take a pin away."""
        request = memory_pb2.UnpinRequest(pin_id=pin_id)
        response = await self.caller.unary(
            self.stub.Unpin, request, self._writing(key), DEADLINE_SECONDS
        )
        return response.pin

    async def pins(self, **fields: Any) -> memory_pb2.ListPinsResponse:
        """The pins in force."""
        request = memory_pb2.ListPinsRequest(**fields)
        return await self.caller.unary(self.stub.ListPins, request, self.context, DEADLINE_SECONDS)

    async def recall(self, query: str, **fields: Any) -> memory_pb2.RecallResponse:
        """What the memory says to that."""
        request = memory_pb2.RecallRequest(query=query, **fields)
        return await self.caller.unary(self.stub.Recall, request, self.context, DEADLINE_SECONDS)

    async def found(self, query: str, **fields: Any) -> list[str]:
        """The texts of the hits, best first."""
        return [hit.text for hit in (await self.recall(query, **fields)).hits]

    async def watch(self, after: memory_pb2.WatchPosition | None) -> memory_pb2.WatchPinsResponse:
        """The first message of a watch."""
        stream = self.caller.server_stream(
            self.stub.WatchPins,
            memory_pb2.WatchPinsRequest(after=after),
            self.context,
            DEADLINE_SECONDS,
        )
        async with aclosing(stream):
            return await anext(stream)

    async def stats(self) -> memory_pb2.GetStatsResponse:
        """The counts."""
        request = memory_pb2.GetStatsRequest()
        return await self.caller.unary(self.stub.GetStats, request, self.context, DEADLINE_SECONDS)

    async def projects(self) -> list[memory_pb2.Project]:
        """The projects that the store holds."""
        request = memory_pb2.ListProjectsRequest()
        response = await self.caller.unary(
            self.stub.ListProjects, request, self.context, DEADLINE_SECONDS
        )
        return list(response.projects)


@dataclass(frozen=True)
class Memory:
    """A service that is up."""

    home: Home
    bare: BareMemory
    stub: Stub
    serving: Serving
    """Whose counts are exact: nobody's, unless the test says so."""

    @property
    def store(self) -> Store:
        """What it keeps."""
        return self.bare.store

    @property
    def index(self) -> LexicalIndex:
        """What it searches."""
        return self.bare.index

    def fill_index(self) -> None:
        """Index what the background has not come to yet."""
        while self.bare.follower.fill(self.store.read):
            pass

    def agent(self, project_id: str | None = None, *, session_id: str = "s-1") -> Agent:
        """An agent in that project, or in a new one."""
        if project_id is None:
            project_id = f"proj_{next(_projects):016x}"
        return Agent(self.stub, CallContext(project_id=project_id, session_id=session_id))


@asynccontextmanager
async def a_memory(home: Home, clock: Clock | None = None) -> AsyncIterator[Memory]:
    """The home's memory service, until the block ends. Its clock goes on by 1 ms a reading."""
    options = [
        ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
        ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ]
    with a_bare_memory(home.data("memory"), clock=clock) as bare, ThreadPoolExecutor(2) as readers:
        server = grpc.aio.server(
            interceptors=interceptors(Metrics("memory"), bare.clock), options=options
        )
        bell, serving = CommitBell(), Serving()
        bare.store.follow(bell)
        servicer = MemoryServicer(
            bare.store,
            bare.index,
            bare.clock,
            bare.ids,
            readers,
            bare.purger,
            bell=bell,
            serving=serving,
        )
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, server)
        server.add_secure_port(
            f"unix:{home.socket('memory')}",
            grpc.local_server_credentials(grpc.LocalConnectionType.UDS),
        )
        await server.start()
        async with open_channel(home, "memory") as channel:
            yield Memory(home, bare, memory_pb2_grpc.MemoryServiceStub(channel), serving)
        bell.close()
        await server.stop(None)
