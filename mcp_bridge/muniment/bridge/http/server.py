"""Serves the bridge over Streamable HTTP: `muniment-mcp --http HOST:PORT`.

One URL for each profile: `/mcp` (context), `/mcp/vault`, `/mcp/core`, `/mcp/all`, and `/mcp/safe`
for hosts that reject dots; `?project=FOLDER` names the caller's project.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import RequestHandler
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import ListenHandler
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from muniment.bridge.calls import Call
from muniment.bridge.catalogue import Catalogue
from muniment.bridge.eras import SUPPORTED_VERSIONS
from muniment.bridge.framing import LINE_LIMIT_BYTES, complain
from muniment.bridge.http.access import Door
from muniment.bridge.http.arrival import TimedProtocol
from muniment.bridge.http.calls import Endpoint, Sessions
from muniment.bridge.http.guard import Guard
from muniment.bridge.http.standing import SessionEdge, StandingStreams
from muniment.bridge.protocol import make_server
from muniment.bridge.subscriptions import LISTEN, Changes, Listening
from muniment.kit.paths import Home
from muniment.kit.settings import Settings
from muniment.workflows.clients import open_clients

__all__ = ["PATHS", "Servers", "run_servers", "serve_http"]

PATHS = {
    "/mcp": ("context", "reference"),
    "/mcp/safe": ("context", "safe"),
    "/mcp/vault": ("vault", "safe"),
    "/mcp/core": ("core", "safe"),
    "/mcp/all": ("all", "safe"),
}
"""Profile and names by path."""

SESSIONS_LIMIT = 1000
SESSION_IDLE_SECONDS = 1800.0
CONNECTIONS_LIMIT = 512
KEEP_ALIVE_SECONDS = 75
DRAIN_SECONDS = 2
"""How long calls may still be answered after SIGTERM."""
LAST_WORDS_SECONDS = 0.3
"""How long who is told that there is no answer may take to read that."""

Servers = Mapping[str, Server[Any]]
"""By path."""


async def serve_http(home: Home, settings: Settings, door: Door, catalogue: Catalogue) -> None:
    """Serve until told to stop."""
    async with open_clients(home) as clients:
        sessions = Sessions(Changes(clients))
        servers: dict[str, Server[Call]] = {}
        for path, (profile, names) in PATHS.items():
            endpoint = Endpoint(
                profile, names, door.folder, catalogue, clients, settings, sessions, home
            )
            server = make_server(catalogue, Listening(sessions.changes), profile)
            server.middleware.append(endpoint.serve)
            servers[path] = server
        try:
            await run_servers(servers, door, on_session_end=sessions.end)
        finally:
            sessions.close()


async def run_servers(
    servers: Servers, door: Door, *, on_session_end: Callable[[str], None]
) -> None:
    """Serve each of the servers at its path, until SIGINT, SIGTERM or SIGHUP.

    `on_session_end` is told the id of a session that its client has ended.
    """
    standing = StandingStreams()
    config = uvicorn.Config(
        _make_app(servers, door, standing, on_session_end),
        log_config=None,
        access_log=False,
        http=TimedProtocol,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=CONNECTIONS_LIMIT,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    config.load()
    config.ssl = door.tls
    complain(f"serving {door.url}/mcp")

    def stop() -> None:
        standing.end()
        _end_listening(servers)

    await _Serving(config, stop).serve(sockets=[door.listening])


def _make_app(
    servers: Servers,
    door: Door,
    standing: StandingStreams,
    on_session_end: Callable[[str], None],
) -> ASGIApp:
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(door.hosts),
        allowed_origins=list(door.origins),
    )
    for server in servers.values():
        server.add_request_handler("server/discover", types.RequestParams, _discovery(server))
    managers = {
        path: StreamableHTTPSessionManager(
            server,
            security_settings=security,
            session_idle_timeout=SESSION_IDLE_SECONDS,
            max_request_body_size=LINE_LIMIT_BYTES,
            max_sessions=SESSIONS_LIMIT,
        )
        for path, server in servers.items()
    }

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield

    routes = [
        Route(path, endpoint=SessionEdge(manager.handle_request, standing, on_session_end))
        for path, manager in managers.items()
    ]
    app = Starlette(routes=routes, lifespan=life)
    guard = Guard(app, TransportSecurityMiddleware(security), door.token)
    if not door.pages:
        return guard
    # A browser asks before it sends a token, and shows its page no answer that does not name it.
    return CORSMiddleware(
        guard,
        allow_origins=door.pages,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "Mcp-Protocol-Version"],
    )


def _discovery(server: Server[Any]) -> RequestHandler[Any, types.RequestParams]:
    async def discover(
        ctx: ServerRequestContext[Any, Any], params: types.RequestParams
    ) -> types.DiscoverResult:
        """As the SDK answers, but with every version that is spoken here."""
        return types.DiscoverResult(
            supported_versions=list(SUPPORTED_VERSIONS),
            capabilities=server.get_capabilities(protocol_version=ctx.protocol_version),
            instructions=server.instructions,
        )

    return discover


class _Serving(uvicorn.Server):
    """Told to stop, ends what has no end by itself, and returns instead of dying of a signal."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at signals, but at none that whoever started this had ignored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._end)
        yield

    def _end(self) -> None:
        # Not by uvicorn's own handler: it makes the SSE library cut calls short at once.
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams that stand, so that only calls are waited for."""
        self._stop()
        await super().shutdown(sockets)
        # Whoever reads nothing would be waited for without end, whatever is cancelled.
        tasks = set(self.server_state.tasks)
        if tasks and (await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS))[1]:
            for connection in list(self.server_state.connections):
                connection.transport.abort()


def _end_listening(servers: Servers) -> None:
    for server in servers.values():
        listening = server.get_request_handler(LISTEN)
        if listening is not None and isinstance(listening.handler, ListenHandler):
            listening.handler.close()
