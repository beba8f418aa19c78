"""Both ends of a front: a harness that spawns it, a worker that it finds. All has deadlines."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muniment.kit.paths import Home

DEADLINE_SECONDS = 20.0
LAUNCHER = Path(__file__).with_name("launch_front.py")

MODERN_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern-client", "version": "2"},
}


def request(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A JSON-RPC request."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}


def modern(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    """A request in the envelope of the stateless era."""
    return request(request_id, method, {**params, "_meta": MODERN_META})


def initialize(request_id: Any, version: str = "2025-06-18") -> dict[str, Any]:
    """A handshake of the older era."""
    client = {"name": "legacy-client", "version": "1"}
    return request(
        request_id,
        "initialize",
        {"protocolVersion": version, "capabilities": {}, "clientInfo": client},
    )


class Channel:
    """Messages, one a line, from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def receive_line(self) -> bytes:
        """The next line; EOFError at the end, TimeoutError when nothing comes."""
        end = time.monotonic() + DEADLINE_SECONDS
        while (length := self._buffer.find(b"\n")) < 0:
            chunk = self._read(end)
            while chunk and b"\n" not in chunk:
                self._buffer += chunk
                chunk = self._read(end)
            if not chunk:
                raise EOFError(bytes(self._buffer))
            self._buffer += chunk
        line = bytes(self._buffer[:length])
        del self._buffer[: length + 1]
        return line

    def receive(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(self.receive_line().decode("utf-8", "strict"))
        return message

    def rest(self) -> list[dict[str, Any]]:
        """Everything that comes until the other side ends."""
        end = time.monotonic() + DEADLINE_SECONDS
        while chunk := self._read(end):
            self._buffer += chunk
        lines = bytes(self._buffer).splitlines()
        self._buffer.clear()
        return [json.loads(line) for line in lines]

    def _read(self, end: float) -> bytes:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError(f"nothing came within {DEADLINE_SECONDS} s")
        try:
            return os.read(self._descriptor, 1024 * 1024)
        except ConnectionResetError:
            return b""


class FrontProcess:
    """A front as a harness sees it."""

    def __init__(
        self,
        home: Home,
        manifest: Path,
        *arguments: str,
        starter: Path | None = None,
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
        command: Sequence[str] = (sys.executable, str(LAUNCHER)),
    ) -> None:
        settings = {"MUNIMENT_HOME": str(home.path), "TEST_MANIFEST": str(manifest)}
        if starter is not None:
            settings["TEST_STARTER"] = str(starter)
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | settings | (environment or {}),
            cwd=cwd,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin = self.process.stdin
        self.stdout = self.process.stdout
        self.stderr = self.process.stderr
        self.channel = Channel(self.stdout.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                continue

    def send_bytes(self, data: bytes) -> None:
        """Write to the front's input as it is."""
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, *messages: object) -> None:
        """Write messages, one a line, in one piece."""
        self.send_bytes(
            b"".join(json.dumps(m, ensure_ascii=False).encode() + b"\n" for m in messages)
        )

    def receive(self) -> dict[str, Any]:
        """The front's next message."""
        return self.channel.receive()

    def ask(self, message: object) -> dict[str, Any]:
        """Send one message and take the next answer."""
        self.send(message)
        return self.receive()

    def close_input(self) -> None:
        """What a harness does first that ends politely."""
        self.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code."""
        return self.process.wait(DEADLINE_SECONDS)

    def complaints(self) -> str:
        """All that the front wrote to standard error, after its end."""
        self.wait()
        return self.stderr.read().decode()


class Peer:
    """A front's connection as the worker sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._channel = Channel(connection.fileno())

    def receive(self) -> dict[str, Any]:
        """The front's next frame."""
        return self._channel.receive()

    def receive_line(self) -> bytes:
        """The same, as it is."""
        return self._channel.receive_line()

    def rest(self) -> list[dict[str, Any]]:
        """Every frame until the front ends."""
        return self._channel.rest()

    def send(self, *frames: object) -> None:
        """Send frames, one a line."""
        for frame in frames:
            self.send_bytes(json.dumps(frame, ensure_ascii=False).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send as it is."""
        self._connection.sendall(data)

    def reply(self, frame: dict[str, Any], result: object) -> None:
        """Answer a relayed request."""
        response = {"jsonrpc": "2.0", "id": frame["message"]["id"], "result": result}
        self.send({"n": frame["n"], "reply": response})

    def close(self) -> None:
        """Break the connection, like a worker that is killed."""
        self._connection.close()


class WorkerSocket:
    """Where a front looks for its worker; the test is the worker, and takes over from another."""

    def __init__(self, home: Home) -> None:
        self._path = home.socket("worker")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._listener.settimeout(DEADLINE_SECONDS)
        self._peers: list[Peer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for peer in self._peers:
            peer.close()

    def accept(self) -> tuple[Peer, dict[str, Any]]:
        """The next connection, and what it says of itself."""
        connection, _ = self._listener.accept()
        peer = Peer(connection)
        self._peers.append(peer)
        hello: dict[str, Any] = peer.receive()["hello"]
        return peer, hello


class StarterSocket:
    """Where the launcher asks for services."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(DEADLINE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    @contextmanager
    def asked(self) -> Iterator[str]:
        """A front that wants services for this home, and waits until the block ends."""
        connection, _ = self._listener.accept()
        with connection:
            yield Channel(connection.fileno()).receive_line().decode()
            connection.sendall(b"1")
