"""Who opens a connection and does not ask, or asks slowly, does not hold it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from muniment.bridge.http.arrival import TimedProtocol

DEADLINE_SECONDS = 20.0
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: "


class Impatient(TimedProtocol):
    """Gives little time."""

    header_seconds = 0.1


class Application:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.told.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.read()

    async def answer(self) -> bytes:
        """The next answer."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.readuntil(b"\r\n\r\n")


@pytest_asyncio.fixture
async def application() -> Application:
    return Application()


@pytest_asyncio.fixture
async def port(application: Application) -> AsyncIterator[int]:
    config = Config(application, log_config=None, access_log=False, lifespan="off")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Impatient(config, state, {}), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for connection in list(state.connections):
        assert isinstance(connection, Impatient)
        connection.transport.abort()
    await server.wait_closed()


async def connect(port: int, *sent: bytes) -> Client:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    for part in sent:
        client.writer.write(part)
        await client.writer.drain()
    return client


@pytest.mark.parametrize("sent", [(), (HALF,), (HALF, b"here\r\n")])
async def test_no_request_in_time(port: int, sent: tuple[bytes, ...]) -> None:
    client = await connect(port, *sent)
    assert await client.rest() == b""
    client.writer.close()


async def test_a_request_that_has_begun_is_not_hurried(application: Application, port: int) -> None:
    asking, silent = await connect(port, HALF, b"here\r\n\r\n"), await connect(port)
    assert await silent.rest() == b""
    application.told.set()
    assert (await asking.answer()).startswith(b"HTTP/1.1 204")
    # The next request on the same connection has its time too, and no more.
    asking.writer.write(REQUEST)
    assert (await asking.answer()).startswith(b"HTTP/1.1 204")
    asking.writer.write(HALF)
    assert await asking.rest() == b""
    for client in (asking, silent):
        client.writer.close()
