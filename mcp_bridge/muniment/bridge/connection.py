"""One front's connection to the worker: frames in, calls in lane order, frames out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from mcp.server.connection import Connection as McpConnection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId

from muniment.bridge.calls import Call, Greeting
from muniment.bridge.catalogue import Catalogue
from muniment.bridge.failures import as_protocol_error
from muniment.bridge.lanes import Lane, Ticket
from muniment.bridge.subscriptions import LISTEN, UPDATED, Changes, Subscriptions
from muniment.bridge.touching import touched
from muniment.kit.settings import Settings
from muniment.workflows.clients import Clients

__all__ = ["FrontConnection", "Worker", "decode", "encode"]

_TRANSPORT = TransportContext(kind="front", can_send_request=False)
_LOG = "`muniment logs worker`"
_Send = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Worker:
    """What all connections share."""

    server: Server[Call]
    catalogue: Catalogue
    clients: Clients
    settings: Settings
    changes: Changes


@dataclass
class _Exchange:
    """The SDK's view of one relayed request: where progress and notifications go."""

    request_id: RequestId
    token: str | int | None
    send: Callable[[Mapping[str, Any]], None]
    transport: TransportContext = _TRANSPORT
    message_metadata: None = None
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: requests go from the client to the server only."""
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification to the client."""
        self.send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress, where the client asked for it."""
        if self.token is None:
            return
        known = {"total": total, "message": message}
        params = {
            "progressToken": self.token,
            "progress": progress,
            **{name: value for name, value in known.items() if value is not None},
        }
        await self.notify("notifications/progress", params)


class FrontConnection:
    """Runs what one front relays. Requests start in arrival order and end in lane order."""

    def __init__(self, worker: Worker, greeting: Greeting, send: _Send) -> None:
        self._worker = worker
        self._greeting = greeting
        self._send = send
        self._lane = Lane()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._tickets: dict[int, Ticket] = {}
        self._unwanted: set[int] = set()
        self._standing: set[int] = set()
        self._subscriptions = Subscriptions(worker.changes, self._tell_updated)
        for uri in greeting.subscribed:
            self._subscriptions.add(uri)

    def receive(self, frame: Mapping[str, Any]) -> None:
        """Take the next frame of the front.

        Raises:
            ValueError: It is none that the protocol has.
        """
        if "cancel" in frame:
            self._cancel(frame["cancel"])
            return
        _require_request(frame)
        arrival = frame["n"]
        if arrival in self._tasks:
            raise ValueError(f"number {arrival} is under way")
        # The place in the lane is taken here, before anything is awaited.
        message = frame["message"]
        method, params = message["method"], message.get("params") or {}
        ticket = self._lane.enter(
            *touched(self._worker.catalogue, self._greeting.profile, method, params)
        )
        task = asyncio.create_task(self._serve(ticket, frame), name=f"call-{arrival}")
        self._tasks[arrival] = task
        if method == LISTEN:
            self._standing.add(arrival)
        self._tickets[arrival] = ticket
        task.add_done_callback(lambda _: self._forget(arrival))

    async def finish(self) -> None:
        """Wait until everything that was received has ended, but for what has no end by itself.

        That is dropped without an answer: a front that is still there asks for it again.
        """
        self.stop_telling()
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def stop_telling(self) -> None:
        """Drop what has no end by itself, however the front went: all fronts share its limits."""
        self._subscriptions.close()
        for arrival in self._standing:
            self._tasks[arrival].cancel()

    def _cancel(self, arrival: object) -> None:
        """Cancel what has not begun to write. What has runs to its end, and is not answered."""
        if not isinstance(arrival, int) or arrival not in self._tasks:
            return
        ticket = self._tickets[arrival]
        if ticket.begun and ticket.writes:
            self._unwanted.add(arrival)
        else:
            self._tasks[arrival].cancel()

    def _forget(self, arrival: int) -> None:
        del self._tasks[arrival]
        # A task that is cancelled before its first step never came to its turn.
        self._lane.leave(self._tickets.pop(arrival))
        self._unwanted.discard(arrival)
        self._standing.discard(arrival)

    def _tell_updated(self, uri: str) -> None:
        updated = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri}}
        self._send({"notify": updated})

    async def _serve(self, ticket: Ticket, frame: Mapping[str, Any]) -> None:
        message, arrival = frame["message"], frame["n"]
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        async with self._lane.turn(ticket):
            try:
                reply["result"] = await self._result(frame)
            except Exception as error:
                told = as_protocol_error(error, message["method"], log=_LOG)
                reply["error"] = told.error.model_dump(mode="json", exclude_none=True)
            if arrival not in self._unwanted:
                self._send({"n": arrival, "reply": reply})

    async def _result(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        message, client = frame["message"], frame.get("client") or {}
        params = message.get("params")
        meta = (params or {}).get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        call = Call(
            greeting=self._greeting,
            arrival=frame["n"],
            client_name=str(client.get("name", "")),
            meta=meta,
            clients=self._worker.clients,
            settings=self._worker.settings,
            subscriptions=self._subscriptions,
        )
        token = meta.get("progressToken")
        exchange = _Exchange(
            request_id=message["id"],
            token=token if isinstance(token, str | int) else None,
            send=lambda note: self._send({"n": frame["n"], "notify": note}),
        )
        connection = McpConnection.from_envelope(
            frame["era"], client, meta.get("io.modelcontextprotocol/clientCapabilities", {})
        )
        with structlog.contextvars.bound_contextvars(
            connection=self._greeting.connection, arrival=frame["n"]
        ):
            return await serve_one(
                self._worker.server,
                exchange,
                message["method"],
                params,
                connection=connection,
                lifespan_state=call,
            )


def _require_request(frame: Mapping[str, Any]) -> None:
    message = frame.get("message")
    if not (
        isinstance(frame.get("n"), int)
        and isinstance(frame.get("era"), str)
        and isinstance(frame.get("client"), dict | None)
        and isinstance(message, dict)
        and isinstance(message.get("id"), int | str)
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params"), dict | None)
    ):
        raise ValueError("the frame relays no request")


def decode(line: bytes) -> dict[str, Any]:
    """The frame of a line.

    Raises:
        ValueError: It is none.
    """
    try:
        frame = json.loads(line)
    except RecursionError as error:
        raise ValueError("the frame is nested too deep") from error
    if not isinstance(frame, dict):
        raise ValueError("the frame is not an object")
    return frame


def encode(frame: Mapping[str, Any]) -> bytes:
    """The frame as a line."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
