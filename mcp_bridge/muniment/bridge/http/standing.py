"""What of a session is no call: the stream that it keeps open, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SessionEdge", "StandingStreams"]


class StandingStreams:
    """The streams that clients keep open for what no call of theirs is answered with."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End all of them, as if their clients had gone."""
        self._ended.set()

    def until_end(self, receive: Receive) -> Receive:
        """What says what the client does, and that it has gone when they end."""

        async def received() -> Message:
            client = asyncio.ensure_future(receive())
            end = asyncio.ensure_future(self._ended.wait())
            try:
                await asyncio.wait((client, end), return_when=asyncio.FIRST_COMPLETED)
                return client.result() if client.done() else {"type": "http.disconnect"}
            finally:
                client.cancel()
                end.cancel()

        return received


class SessionEdge:
    """Between HTTP and the SDK's sessions."""

    def __init__(
        self, app: ASGIApp, standing: StandingStreams, on_end: Callable[[str], None]
    ) -> None:
        """`on_end` is told the id of a session that its client has ended."""
        self._app = app
        self._standing = standing
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        if scope["method"] == "GET":
            await self._stand(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._end(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _stand(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = False

        async def watch(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await self._app(scope, self._standing.until_end(receive), watch)
        if is_open:
            await send({"type": "http.response.body", "body": b""})

    async def _end(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                self._on_end(Headers(scope=scope).get("mcp-session-id", ""))
            await send(message)

        await self._app(scope, receive, watch)
