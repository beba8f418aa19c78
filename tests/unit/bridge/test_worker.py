"""The worker's socket: who may talk to it, what it makes of nonsense, and how it stops."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muniment.bridge.connection import FrontConnection
from muniment.bridge.worker import PROTOCOL, run_worker
from muniment.kit.errors import PreconditionError
from muniment.kit.paths import Home
from muniment.kit.settings import Settings
from muniment.memory.service import MemoryServicer
from tests.support.homes import a_home
from tests.support.memory import a_memory

DEADLINE_SECONDS = 20.0

HELLO: dict[str, Any] = {
    "protocol": PROTOCOL,
    "connection": "c" * 32,
    "version": "0",
    "cwd": "/",
    "profile": "context",
    "names": "reference",
    "environment": {"MUNIMENT_SESSION": "s"},
    "client": None,
}


class Socket:
    """A front's socket, and no front."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, *frames: object) -> None:
        for frame in frames:
            line = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
            self._writer.write(line + b"\n")

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        self.send({"n": number, "era": "2025-06-18", "client": None, "message": message})

    async def receive(self) -> dict[str, Any] | None:
        """The next frame, or None at the end."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            line = await self._reader.readline()
        return json.loads(line) if line else None

    def leave(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(home: Home, hello: object = HELLO) -> AsyncIterator[Socket]:
    reader, writer = await asyncio.open_unix_connection(home.socket("worker"))
    try:
        socket = Socket(reader, writer)
        socket.send({"hello": hello} if isinstance(hello, dict) else hello)
        yield socket
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def home() -> AsyncIterator[Home]:
    """A home with a worker, in this process, which was told to stop by the end."""
    with a_home() as home:
        task = asyncio.create_task(run_worker(home, Settings()))
        await listening(home, task)
        yield home
        await stopped(task)


async def listening(home: Home, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not home.socket("worker").exists():
            assert not task.done()
            await asyncio.sleep(0)


async def stopped(task: asyncio.Task[None]) -> None:
    if not task.done():
        os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await task


async def test_its_socket_is_its_owner_s(home: Home) -> None:
    assert stat.S_IMODE(home.socket("worker").stat().st_mode) == 0o600


async def test_another_worker_is_refused(home: Home) -> None:
    with pytest.raises(PreconditionError, match="another process serves"):
        await run_worker(home, Settings())
    async with connected(home) as socket:
        socket.call(1, "memory.recall")
        assert await socket.receive()


async def test_a_socket_that_was_left_behind_is_replaced() -> None:
    with a_home() as home:
        server = await asyncio.start_unix_server(lambda *_: None, home.socket("worker"))
        server.close()
        await server.wait_closed()
        home.why("worker").write_text("the disk was full")
        assert home.socket("worker").exists()
        task = asyncio.create_task(run_worker(home, Settings()))
        while not task.done():
            try:
                async with connected(home) as socket:
                    socket.call(1, "memory.recall")
                    assert await socket.receive()
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0)
        assert not home.why("worker").exists()
        await stopped(task)
        assert not home.socket("worker").exists()


async def test_a_front_of_another_protocol_is_told(home: Home) -> None:
    async with connected(home, HELLO | {"protocol": 99}) as socket:
        frame = await socket.receive()
        assert frame is not None
        assert "`muniment restart worker`" in frame["refused"]
        assert await socket.receive() is None


@pytest.mark.parametrize(
    "hello",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b"{}",
        b'{"hello": []}',
        b'{"hello": {}}',
        HELLO | {"profile": "everything"},
        HELLO | {"names": ["reference"]},
        HELLO | {"cwd": 7},
        HELLO | {"connection": None},
        HELLO | {"environment": [["A", "b"]]},
        HELLO | {"environment": {"MUNIMENT_SESSION": 7}},
        {key: value for key, value in HELLO.items() if key != "cwd"},
    ],
    ids=lambda hello: repr(hello)[:40],
)
async def test_a_greeting_that_is_none_ends_the_connection(home: Home, hello: Any) -> None:
    async with connected(home, hello) as socket:
        assert await socket.receive() is None
    async with connected(home) as socket:
        socket.call(1, "memory.recall")
        assert (await socket.receive() or {})["n"] == 1


@pytest.mark.parametrize(
    "frame", [b"{", b"7", b"[]", b"[" * 100_000, b"\x00", b'{"n": 1}', {"hello": HELLO}]
)
async def test_nonsense_ends_its_own_connection_only(home: Home, frame: Any) -> None:
    async with connected(home) as good, connected(home) as bad:
        bad.send(frame)
        assert await bad.receive() is None
        good.send({"cancel": {"n": 1}})
        good.call(1, "memory.recall")
        assert (await good.receive() or {})["n"] == 1


async def test_a_front_that_is_dropped_is_told_of_nothing_more(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All fronts share the number of streams that may be."""
    ended = asyncio.Event()
    stop_telling = FrontConnection.stop_telling

    def noted(connection: FrontConnection) -> None:
        stop_telling(connection)
        ended.set()

    monkeypatch.setattr(FrontConnection, "stop_telling", noted)
    async with connected(home) as socket:
        socket.send(b"nonsense")
        assert await socket.receive() is None
    async with asyncio.timeout(DEADLINE_SECONDS):
        await ended.wait()


async def test_a_front_that_vanishes_leaves_its_calls_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    commit = MemoryServicer.CommitEpisode

    async def slow(*arguments: Any) -> Any:
        begun.set()
        await may_end.wait()
        response = await commit(*arguments)
        ended.set()
        return response

    monkeypatch.setattr(MemoryServicer, "CommitEpisode", slow)
    with a_home() as home:
        async with a_memory(home):
            task = asyncio.create_task(run_worker(home, Settings()))
            await listening(home, task)
            async with connected(home) as socket:
                socket.call(1, "memory.commit_episode", role="user", content="x")
                await begun.wait()
            may_end.set()
            async with asyncio.timeout(DEADLINE_SECONDS):
                await ended.wait()
            await stopped(task)


async def test_told_to_stop_it_finishes_what_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    commit = MemoryServicer.CommitEpisode

    async def slow(*arguments: Any) -> Any:
        begun.set()
        await may_end.wait()
        return await commit(*arguments)

    monkeypatch.setattr(MemoryServicer, "CommitEpisode", slow)
    with a_home() as home:
        async with a_memory(home):
            task = asyncio.create_task(run_worker(home, Settings()))
            await listening(home, task)
            async with connected(home) as busy, connected(home) as idle:
                busy.call(1, "memory.commit_episode", role="user", content="x")
                busy.call(2, "memory.commit_episode", role="user", content="y")
                await begun.wait()
                os.kill(os.getpid(), signal.SIGTERM)
                assert await idle.receive() is None
                assert not home.socket("worker").exists()
                busy.call(3, "memory.commit_episode", role="user", content="came too late")
                may_end.set()
                answered = [await busy.receive() for _ in range(3)]
            assert [frame and frame["n"] for frame in answered] == [1, 2, None]
            await stopped(task)


async def test_what_does_not_end_in_time_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def endless(*_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(MemoryServicer, "CommitEpisode", endless)
    with a_home() as home:
        async with a_memory(home):
            task = asyncio.create_task(run_worker(home, Settings(drain_seconds=0)))
            await listening(home, task)
            async with connected(home) as socket:
                socket.call(1, "memory.commit_episode", role="user", content="x")
                await begun.wait()
                await stopped(task)
                assert await socket.receive() is None
