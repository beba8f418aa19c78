"""What no client of the integration tests can do quickly: be slow, vanish, be told that it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.types import Message, Receive, Scope, Send

from muniment.bridge.http.guard import Guard

NEVER = asyncio.Event


class Inner:
    """The application behind the guard."""

    def __init__(self, *, begins: bool = False) -> None:
        self.called = asyncio.Event()
        self._begins = begins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._begins:
            kind = [(b"content-type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": kind})
        self.called.set()
        await NEVER().wait()


class Exchange:
    """One request to a guard, of which the client has sent only some."""

    def __init__(
        self, guard: Guard, *sent: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self._sent = list(sent)
        self._gone = asyncio.Event()
        self._guard = guard
        self._given = {"content-type": "application/json", **(headers or {})}
        self.got: list[Message] = []

    def leave(self) -> None:
        """The client goes away."""
        self._gone.set()

    async def run(self) -> None:
        """Serve it."""
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(key.encode(), value.encode()) for key, value in self._given.items()],
        }
        await self._guard(scope, self._receive, self._send)

    @property
    def status(self) -> int:
        """Of the answer."""
        status: int = self.got[0]["status"]
        return status

    @property
    def body(self) -> bytes:
        """Of the answer, which has ended."""
        assert not self.got[-1].get("more_body", False)
        return b"".join(part.get("body", b"") for part in self.got)

    async def _receive(self) -> Message:
        if self._sent:
            more = {"more_body": self._sent[0] != END}
            return {"type": "http.request", "body": self._sent.pop(0), **more}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.got.append(message)


END = b""
PING = json.dumps({"jsonrpc": "2.0", "id": "p", "method": "ping"}).encode()
SESSION = {"mcp-session-id": "s"}


def guard(inner: Inner, **more: Any) -> Guard:
    return Guard(inner, TransportSecurityMiddleware(None), None, **more)


@pytest.fixture(autouse=True)
async def in_time() -> AsyncIterator[None]:
    async with asyncio.timeout(20):
        yield


async def test_a_body_that_does_not_come() -> None:
    inner = Inner()
    exchange = Exchange(guard(inner, body_seconds=0.01), b"{")
    await exchange.run()
    assert exchange.status == 408
    assert "took too long" in json.loads(exchange.body)["error"]["message"]
    assert not inner.called.is_set()


async def test_a_client_that_goes_before_its_body_has_come() -> None:
    inner = Inner()
    exchange = Exchange(guard(inner), b"{")
    exchange.leave()
    await exchange.run()
    assert exchange.got == []
    assert not inner.called.is_set()


@pytest.mark.parametrize("begins", [False, True])
async def test_whoever_waits_when_the_server_ends_is_told(begins: bool) -> None:
    inner = Inner(begins=begins)
    exchange = Exchange(guard(inner), PING, END, headers=SESSION)
    serving = asyncio.create_task(exchange.run())
    await inner.called.wait()
    serving.cancel()
    await serving
    assert exchange.status == (200 if begins else 503)
    body = exchange.body.strip()
    message = json.loads(body.split(b"data: ")[1] if begins else body)
    assert message["id"] == "p"
    assert "ended before the answer was there" in message["error"]["message"]


async def test_an_id_is_free_again_after_its_answer() -> None:
    inner = Inner()
    guarding = guard(inner)
    for _ in range(2):
        inner.called.clear()
        serving = asyncio.create_task(Exchange(guarding, PING, END, headers=SESSION).run())
        await inner.called.wait()
        second = Exchange(guarding, PING, END, headers=SESSION)
        await second.run()
        assert second.status == 400
        assert "is under way" in json.loads(second.body)["error"]["message"]
        serving.cancel()
        await serving
