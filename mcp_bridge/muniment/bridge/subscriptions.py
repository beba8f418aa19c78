"""Telling who listens that a resource has changed.

Pins change by any process: another window, the command line, an import. So changes come from the
memory service, which is watched for as long as anybody listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from muniment.bridge.eras import SUBSCRIPTIONS_LIMIT
from muniment.bridge.resources import ANCHORS, find_resource
from muniment.kit.errors import LimitError, MunimentError
from muniment.workflows.clients import Clients
from muniment.workflows.pins import watch_pins

__all__ = ["LISTEN", "UPDATED", "Changes", "Listening", "Subscriptions"]

LISTEN = "subscriptions/listen"
"""What the modern era asks with; the answer is the stream of changes, without end."""

UPDATED = "notifications/resources/updated"

BEGIN_SECONDS = 5.0
"""How long who asks for changes waits for the service that tells of them."""

_log = structlog.get_logger()


class Changes:
    """The SDK's bus, fed by the memory service while somebody listens."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._bus = InMemorySubscriptionBus()
        self._listeners = 0
        self._watching: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    async def publish(self, event: ServerEvent) -> None:
        """Tell everybody who listens."""
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call the listener for each event, until what this returns is called."""
        unsubscribe = self._bus.subscribe(listener)
        self._listeners += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="watch-pins")
        listens = True

        def leave() -> None:
            nonlocal listens
            unsubscribe()
            self._listeners -= listens
            listens = False
            if not self._listeners and self._watching is not None:
                self._watching.cancel()
                self._watching = None
                self._begun.clear()

        return leave

    async def begun(self) -> None:
        """Wait until every change from now on is told; but not long for a service that is away."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._begun.wait(), BEGIN_SECONDS)

    async def _watch(self) -> None:
        try:
            async for found in watch_pins(self._clients):
                self._begun.set()
                if found.missed:
                    _log.warning("changes of pins were missed")
                for project_id in found.project_ids:
                    await self.publish(ResourceUpdated(uri=ANCHORS.uri(project_id)))
        except Exception:
            _log.exception("pins are not watched any more")


class Listening(ListenHandler):
    """Serves `subscriptions/listen`; what it acknowledges, it tells from then on."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(changes)
        self._changes = changes
        self._is_closed = False

    def close(self) -> None:
        """End every stream, and those at once that are still to begin."""
        self._is_closed = True
        super().close()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one stream."""
        leave = self._changes.subscribe(lambda event: None)
        try:
            await self._changes.begun()
            if self._is_closed:
                return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: ctx.request_id})
            return await super().__call__(ctx, params)
        finally:
            leave()


class Subscriptions:
    """What one connection of the older era has subscribed to, with `resources/subscribe`."""

    def __init__(self, changes: Changes, tell: Callable[[str], None]) -> None:
        """`tell` sends the update of a URI to the client."""
        self._changes = changes
        self._tell = tell
        self._uris: set[str] = set()
        self._leave: Callable[[], None] | None = None

    async def begun(self) -> None:
        """Wait until every change of what was added is told."""
        if self._leave is not None:
            await self._changes.begun()

    def add(self, uri: str) -> bool:
        """Tell of the resource's changes. False where the URI names none.

        Raises:
            LimitError: There are as many as may be.
        """
        try:
            if find_resource(uri) is None:
                return False
        except MunimentError:
            return False
        if uri not in self._uris and len(self._uris) >= SUBSCRIPTIONS_LIMIT:
            raise LimitError(
                f"this connection has subscribed to {SUBSCRIPTIONS_LIMIT} resources already",
                reason="SUBSCRIPTIONS_TOO_MANY",
                fix="unsubscribe from some of them first",
            )
        self._uris.add(uri)
        if self._leave is None:
            self._leave = self._changes.subscribe(self._hear)
        return True

    def remove(self, uri: str) -> None:
        """Tell of the resource's changes no more."""
        self._uris.discard(uri)
        if not self._uris:
            self.close()

    def close(self) -> None:
        """Tell of nothing any more."""
        self._uris.clear()
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _hear(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and event.uri in self._uris:
            self._tell(event.uri)
