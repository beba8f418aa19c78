"""A model on loopback that plays a script: it calls tools in order, then says its last words.

It is also the proxy that the harnesses are told to use: whatever wants to leave the machine comes
here, is refused, and is written down.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.hosts.dialects import DIALECTS, ByCall, Dialect, Reply, Returned

__all__ = ["MODEL", "Asked", "ScriptedModel", "Step"]

MODEL = "scripted-1"


@dataclass(frozen=True)
class Step:
    """A call that the model makes."""

    tool: ByCall
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request of a harness that offered tools."""

    body: Mapping[str, Any]
    offered: Sequence[ByCall]
    returned: Sequence[Returned]


class ScriptedModel:
    """Serves the dialects on a port of its own choice, until the block ends."""

    def __init__(
        self, script: Sequence[Step], last_words: str, *, name: str, on_asked: Callable[[int], None]
    ) -> None:
        """Serve.

        Args:
            script: What it calls, one after the other; step n is played to a transcript that
                holds n results, so that a request that is sent again gets the same answer.
            last_words: What it says then.
            name: Goes into the ids of its calls, which no other run may have.
            on_asked: Called in the middle of each turn, with the number of results so far.
        """
        self.asked: list[Asked] = []
        """What offered tools; what did not was about a title, or the like."""
        self.outside: list[str] = []
        """Hosts that a harness wanted to reach."""
        self.unknown: list[str] = []
        """What it was asked and does not know."""
        self._script = script
        self._last_words = last_words
        self._name = name
        self._on_asked = on_asked
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="model")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def reply(self, dialect: Dialect, body: Mapping[str, Any]) -> Reply:
        """What it says to a request."""
        asked = Asked(body, dialect.offered(body), dialect.returned(body))
        if not asked.offered:
            return Reply("A title")
        self._on_asked(len(asked.returned))
        with self._lock:
            self.asked.append(asked)
        done = len(asked.returned)
        if done >= len(self._script):
            return Reply(self._last_words)
        step = self._script[done]
        arguments = json.dumps(step.arguments, ensure_ascii=False)
        return Reply("", f"call_{self._name}_{done:016}", step.tool, arguments)

    def note(self, kind: list[str], what: str) -> None:
        """Write down what should not have come."""
        with self._lock:
            kind.append(what)


class _Server(ThreadingHTTPServer):
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    """Takes the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_CONNECT(self) -> None:
        self._refuse(self.path)

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        if self._wants_out():
            return
        if urlsplit(self.path).path == "/v1/models":
            models = [{"id": MODEL, "object": "model", "created": 0, "owned_by": "tests"}]
            # Codex looks for its own catalogue under the second name.
            self._send_json({"object": "list", "data": models, "models": []})
        else:
            self.server.model.note(self.server.model.unknown, f"GET {self.path}")
            self._send_json({"error": {"message": "not here"}}, 404)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self._wants_out():
            return
        path = urlsplit(self.path).path
        dialect = DIALECTS.get(path)
        if path == "/v1/messages/count_tokens":
            self._send_json({"input_tokens": 1})
        elif dialect is None:
            self.server.model.note(self.server.model.unknown, f"POST {self.path}")
            self._send_json({"error": {"message": "not here"}}, 404)
        else:
            self._answer(dialect, json.loads(content))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self, dialect: Dialect, body: Mapping[str, Any]) -> None:
        reply = self.server.model.reply(dialect, body)
        if not body.get("stream"):
            self._send_json(dialect.whole(reply, MODEL))
            return
        stream = ""
        for name, data in dialect.events(reply, MODEL):
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            stream += ("" if name is None else f"event: {name}\n") + f"data: {text}\n\n"
        self._send(stream.encode(), "text/event-stream")

    def _wants_out(self) -> bool:
        """Whether this is for another host, by way of us."""
        host = urlsplit(self.path).netloc
        if host:
            self._refuse(host)
        return bool(host)

    def _refuse(self, host: str) -> None:
        self.server.model.note(self.server.model.outside, host)
        self._send_json({"error": "nothing leaves this machine"}, 403)

    def _send_json(self, content: object, status: int = 200) -> None:
        self._send(json.dumps(content).encode(), "application/json", status)

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            pass  # A harness that ends does not wait for a title.
        self.close_connection = True
