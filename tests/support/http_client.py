"""A client of Streamable HTTP that sends whatever a test says, also what no client should."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.http_server import HttpServer

__all__ = ["LEGACY", "MODERN", "Caller", "Reply", "Stream", "modern_meta"]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"

_DEADLINE_SECONDS = 60.0
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def modern_meta(version: str = MODERN, **more: Any) -> dict[str, Any]:
    """The envelope of the stateless era."""
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        **more,
    }


@dataclass(frozen=True)
class Reply:
    """What one request was answered with."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message: the body, or the last event of a stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return list(_events(self.body.decode().splitlines()))[-1]
        message: dict[str, Any] = json.loads(self.body)
        return message

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error."""
        error: dict[str, Any] = self.message["error"]
        return error

    @property
    def result(self) -> dict[str, Any]:
        """The result of a request that succeeded."""
        message = self.message
        assert self.status == 200, message
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result

    @property
    def content(self) -> dict[str, Any]:
        """The structured content of a tool that succeeded."""
        result = self.result
        assert not result["isError"], result
        content: dict[str, Any] = result["structuredContent"]
        return content


class Stream:
    """The events of a response that stays open."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self._events = _events(iter(self._line, ""))

    def event(self) -> dict[str, Any]:
        """The next message; StopIteration where the server has ended the stream."""
        return next(self._events)

    def close(self) -> None:
        """Stop listening."""
        self._response.close()
        self._connection.close()

    def _line(self) -> str:
        return self._response.readline().decode()


@dataclass(frozen=True)
class Caller:
    """One client of one server; each request has a connection of its own."""

    server: HttpServer
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""
    tls: ssl.SSLContext | None = None

    def at(self, path: str) -> Caller:
        """The same, of another URL of the server."""
        return replace(self, path=path)

    # --- The era of 2026-07-28

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        """Send a request of the modern era, as a client should."""
        return self.post(*self.modern(method, params))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments}).content

    @contextmanager
    def listen(self, method: str, params: Mapping[str, Any]) -> Iterator[Stream]:
        """Send a request of the modern era and read its answer event by event."""
        with self.stream("POST", *self.modern(method, params)) as stream:
            yield stream

    def modern(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Body and headers of a request of the modern era."""
        given = {"_meta": modern_meta(), **(params or {})}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in _NAMED:
            headers["Mcp-Name"] = str(given[_NAMED[method]])
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}, headers

    # --- The era of sessions

    def open_session(self) -> Caller:
        """Shake hands; returns the client of the session."""
        client = {"name": "agent", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        opened = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert opened.result["protocolVersion"] == LEGACY
        session = opened.headers["mcp-session-id"]
        headers = {**self.headers, "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
        mine = replace(self, headers=headers)
        noted = mine.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert noted.status == 202
        return mine

    def ask_session(
        self, method: str, params: Mapping[str, Any] | None = None, *, request_id: int = 1
    ) -> Reply:
        """Send a request of the session."""
        return self.post(self.request(method, params, request_id=request_id))

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, request_id: int = 1
    ) -> dict[str, Any]:
        """A request of the session, as it goes over the wire."""
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}

    def call_session(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool, called in the session."""
        return self.ask_session("tools/call", {"name": tool, "arguments": arguments}).content

    # --- Whatever else

    def post(self, message: object, headers: Mapping[str, str] | None = None) -> Reply:
        """POST a message with these headers, besides the usual ones."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.send("POST", body, headers)

    def send(
        self, method: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send anything, and read the whole answer."""
        connection = self.connect()
        connection.request(method, self.path, body, self._headers(headers))
        return self.read(connection)

    def send_only(
        self, message: object, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """POST a message and wait for nothing; `read` gives the answer."""
        connection = self.connect()
        body = json.dumps(message).encode()
        connection.request("POST", self.path, body, self._headers(headers))
        return connection

    def read(self, connection: http.client.HTTPConnection) -> Reply:
        """The answer to what was sent; the connection is closed."""
        try:
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())
        finally:
            connection.close()

    @contextmanager
    def stream(
        self, method: str, message: object = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Stream]:
        """Send something, and read the answer event by event."""
        connection = self.connect()
        body = None if message is None else json.dumps(message).encode()
        connection.request(method, self.path, body, self._headers(headers))
        stream = Stream(connection)
        try:
            yield stream
        finally:
            stream.close()

    def connect(self) -> http.client.HTTPConnection:
        """A connection to the server."""
        host, port = self.server.host, self.server.port
        if self.tls is not None:
            return http.client.HTTPSConnection(
                host, port, timeout=_DEADLINE_SECONDS, context=self.tls
            )
        return http.client.HTTPConnection(host, port, timeout=_DEADLINE_SECONDS)

    def _headers(self, more: Mapping[str, str] | None) -> dict[str, str]:
        usual = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        return {**usual, **self.headers, **(more or {})}


def _events(lines: Iterator[str] | list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data:") and (data := line.removeprefix("data:").strip()):
            yield json.loads(data)
