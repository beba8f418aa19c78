"""From a request over HTTP to a call, in the order of its session.

A session of the older era is a connection. In the modern era every request stands for itself: its
order is that of the session that it names, and where it names none it has none.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from starlette.requests import Request

from muniment.bridge.calls import Call, Greeting
from muniment.bridge.catalogue import Catalogue
from muniment.bridge.eras import HANDSHAKE_VERSIONS
from muniment.bridge.failures import as_protocol_error
from muniment.bridge.lanes import Lane, Ticket
from muniment.bridge.subscriptions import LISTEN, Changes, Subscriptions
from muniment.bridge.touching import touched
from muniment.kit.errors import MunimentError
from muniment.kit.paths import Home
from muniment.kit.randomness import Randomness, SystemRandomness
from muniment.kit.settings import Settings
from muniment.kit.supervise import ensure_running, supervisor_lives
from muniment.workflows.clients import Clients

__all__ = ["PROJECT_PARAMETER", "Endpoint", "Sessions"]

PROJECT_PARAMETER = "project"
"""Of the URL: the folder of the caller's project."""

SUBSCRIBED_SESSIONS_LIMIT = 1000
"""Sessions whose subscriptions are kept; those of the one that asked longest ago go first."""

_LOG = "what this server writes to standard error"
_START_SECONDS = 10.0
_NEEDING_SERVICES = frozenset({"tools/call", "resources/read", "resources/subscribe", LISTEN})
_CLIENT = "io.modelcontextprotocol/clientInfo"
_Context = ServerRequestContext[Any, Any]
_log = structlog.get_logger()


class Sessions:
    """What is kept of sessions: their order, and what they subscribed to."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        """Of resources."""
        self._lanes: WeakValueDictionary[str, Lane] = WeakValueDictionary()
        self._subscriptions: OrderedDict[str, Subscriptions] = OrderedDict()
        self._unattended: set[asyncio.Future[Any]] = set()

    def lane(self, name: str) -> Lane:
        """The lane of that session, for as long as anybody holds it."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane()
        return lane

    def subscriptions(self, name: str | None, session: ServerSession) -> Subscriptions:
        """What that session subscribed to; updates go to its standing stream."""
        if name is None:
            return Subscriptions(self.changes, lambda uri: None)  # Its era has no such request.
        known = self._subscriptions.get(name)
        if known is None:
            known = Subscriptions(self.changes, lambda uri: self._tell(session, uri))
            self._subscriptions[name] = known
            while len(self._subscriptions) > SUBSCRIBED_SESSIONS_LIMIT:
                self._subscriptions.popitem(last=False)[1].close()
        self._subscriptions.move_to_end(name)
        return known

    def end(self, name: str) -> None:
        """Forget the session."""
        known = self._subscriptions.pop(name, None)
        if known is not None:
            known.close()

    def close(self) -> None:
        """Forget all of them."""
        for name in list(self._subscriptions):
            self.end(name)

    def let_end(self, task: asyncio.Future[Any]) -> None:
        """Hold what runs on though nobody waits for it."""
        self._unattended.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._unattended.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.info("nobody waited for what failed", error=f"{type(error).__name__}: {error}")

    def _tell(self, session: ServerSession, uri: str) -> None:
        self.let_end(asyncio.ensure_future(session.send_resource_updated(uri)))


@dataclass(frozen=True)
class Endpoint:
    """One URL: a profile, in one spelling of names."""

    profile: str
    names: str
    folder: Path
    """The project of callers that name none."""
    catalogue: Catalogue
    clients: Clients
    settings: Settings
    sessions: Sessions
    home: Home
    randomness: Randomness = field(default_factory=SystemRandomness)
    _arrivals: itertools.count[int] = field(default_factory=itertools.count)

    async def serve(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """The SDK's middleware: run the request as a call, when its turn has come."""
        if ctx.request_id is None:
            return await call_next(ctx)
        call = self._call(ctx)
        params = ctx.params or {}
        lane = self.sessions.lane(_lane_of(call, params))
        ticket = lane.enter(*touched(self.catalogue, self.profile, ctx.method, params))
        with structlog.contextvars.bound_contextvars(
            connection=call.greeting.connection, arrival=call.arrival
        ):
            # Its own task, since the SDK cancels whatever a caller stops waiting for.
            serving = asyncio.ensure_future(
                self._in_turn(lane, ticket, call_next, replace(ctx, lifespan_context=call))
            )
        serving.add_done_callback(lambda _: lane.leave(ticket))
        try:
            return await asyncio.shield(serving)
        except asyncio.CancelledError:
            if ticket.begun and ticket.writes:
                self.sessions.let_end(serving)
            else:
                serving.cancel()
            raise

    async def _in_turn(
        self, lane: Lane, ticket: Ticket, call_next: CallNext, ctx: _Context
    ) -> HandlerResult:
        async with lane.turn(ticket):
            try:
                if ctx.method in _NEEDING_SERVICES:
                    await self._start_services()
                return await call_next(ctx)
            except Exception as error:
                raise as_protocol_error(error, ctx.method, log=_LOG) from error

    async def _start_services(self) -> None:
        """Start the services where nobody has, or somebody has stopped them."""
        try:
            if not await asyncio.to_thread(supervisor_lives, self.home):
                await asyncio.to_thread(ensure_running, self.home, deadline_seconds=_START_SECONDS)
        except (MunimentError, OSError) as error:
            text = f"The services of Muniment could not be started, nothing was recorded: {error}"
            raise MCPError(INTERNAL_ERROR, text) from error

    def _call(self, ctx: _Context) -> Call:
        request = ctx.request
        session, folder = None, None
        if isinstance(request, Request):
            folder = request.query_params.get(PROJECT_PARAMETER)
            if ctx.protocol_version in HANDSHAKE_VERSIONS:  # The modern era has no sessions.
                session = request.headers.get("mcp-session-id")
        connection = session or self.randomness.token(16).hex()
        greeting = Greeting(
            connection=connection,
            profile=self.profile,
            names=self.names,
            cwd=str(folder or self.folder),
            lasts=session is not None,
        )
        meta: Mapping[str, Any] = ctx.meta or {}
        return Call(
            greeting=greeting,
            arrival=next(self._arrivals),
            client_name=_client_name(ctx, meta),
            meta=meta,
            clients=self.clients,
            settings=self.settings,
            subscriptions=self.sessions.subscriptions(session, ctx.session),
        )


def _lane_of(call: Call, params: Mapping[str, Any]) -> str:
    arguments = params.get("arguments")
    named = arguments.get("session_id") if isinstance(arguments, dict) else None
    if call.greeting.lasts or not isinstance(named, str) or not named:
        return call.greeting.connection
    return f"named {named}"


def _client_name(ctx: _Context, meta: Mapping[str, Any]) -> str:
    told = meta.get(_CLIENT)
    if isinstance(told, dict):
        return str(told.get("name", ""))
    greeted = ctx.session.client_params
    return greeted.client_info.name if greeted else ""
