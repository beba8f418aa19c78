"""Stands between the slots service and a llama-server, to let things happen at an exact moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import httpx

from tests.support.llama.process import LlamaServer

__all__ = ["Gateway"]

_FORWARD_SECONDS = 60.0
_NOTED_BYTES = 200
_GZIP = b"\x1f\x8b"


class Gateway:
    """Passes requests on to a server and its answers back, and keeps a list of them."""

    def __init__(self, server: LlamaServer | None = None) -> None:
        self.server = server
        self.asked: list[str] = []
        """Method, path and the beginning of the body of all requests."""
        self.before: dict[str, Callable[[], object]] = {}
        """What is done once, before a request is passed on whose path has that in it."""
        self.dropped: set[str] = set()
        """The answer to a request whose path has one of these in it is not passed back, once."""
        self.answered: dict[str, tuple[int, bytes]] = {}
        """What a request whose path has that in it is answered with, once, and not passed on."""
        self.instead: dict[str, Callable[[bytes], bytes | Iterable[bytes]]] = {}
        """What is passed back instead of the answer's body, by path without question mark: the
        whole, or parts for as long as somebody reads them."""
        # No connection outlives its request, so that each finds the server that is there now.
        self._client = httpx.Client(
            timeout=_FORWARD_SECONDS, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self._turn = threading.Lock()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()
        self._client.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def forget(self) -> None:
        """Begin anew, without a server."""
        self.server = None
        self.asked.clear()
        self.before.clear()
        self.dropped.clear()
        self.answered.clear()
        self.instead.clear()

    def was_asked(self, part: str) -> bool:
        """Whether there was a request with that in its path or body."""
        return any(part in one for one in self.asked)

    def _said(self, path: str, body: bytes) -> bytes | Iterable[bytes]:
        """What is passed back of that answer."""
        instead = self.instead.get(path.partition("?")[0])
        return body if instead is None else instead(body)

    def _begin(self, method: str, path: str, body: bytes) -> bool:
        """Note a request; whether its answer is passed back."""
        with self._turn:
            start = body[:_NOTED_BYTES].decode(errors="replace")
            self.asked.append(f"{method} {path} {start}")
            for part in [part for part in self.before if part in path]:
                self.before.pop(part)()
            dropped = {part for part in self.dropped if part in path}
            self.dropped -= dropped
            return not dropped

    def _own_answer(self, path: str) -> httpx.Response | None:
        with self._turn:
            for part in [part for part in self.answered if part in path]:
                status, body = self.answered.pop(part)
                return httpx.Response(status, content=body)
        return None

    def _pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> httpx.Response | None:
        """The server's answer; None where there is none, or it is to be lost."""
        is_passed_back = self._begin(method, path, body)
        if (own := self._own_answer(path)) is not None:
            return own
        if self.server is None:
            return None
        try:
            answer = self._client.request(
                method, f"{self.server.url}{path}", content=body, headers=headers
            )
        except httpx.HTTPError:
            return None
        return answer if is_passed_back else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        pass_on, said = self._pass_on, self._said

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._forward()

            def do_POST(self) -> None:
                self._forward()

            def log_message(self, format: str, *args: object) -> None:
                pass

            def _forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kept = ("Authorization", "Content-Type")
                headers = {name: self.headers[name] for name in kept if name in self.headers}
                answer = pass_on(self.command, self.path, headers, body)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status_code)
                told = said(self.path, answer.content)
                if not isinstance(told, bytes):
                    self._write_parts(told)
                    return
                if told.startswith(_GZIP):
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def _write_parts(self, parts: Iterable[bytes]) -> None:
                self.close_connection = True
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for part in parts:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    pass  # Nobody reads any more.

        return Handler
