"""An MCP server over stdio, called one request after the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.records.corpus import Corpus

__all__ = ["Server"]

_VERSION = "2025-06-18"


class Server:
    """A server's process."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        fill: Callable[[Corpus, int], None] | None = None,
    ) -> None:
        """`fill` brings in records by a quicker way than the tools; those are used where None."""
        self._fill = fill
        self._next = 0
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        client = {"name": "bench", "version": "0"}
        params = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}
        self._ask("initialize", params)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def fill(self, corpus: Corpus, size: int) -> None:
        """Have the first so many records."""
        if self._fill is not None:
            self._fill(corpus, size)
            return
        for category, name, body in corpus.records(0, size):
            self.call("memory_remember", {"category": category, "name": name, "body": body})

    def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Call a tool; it has to succeed."""
        result = self._ask("tools/call", {"name": name, "arguments": dict(arguments)})
        if result.get("isError"):
            raise RuntimeError(f"{name} failed: {result}")
        return result

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply: dict[str, Any] = json.loads(line)
            if reply.get("id") == self._next:
                if "error" in reply:
                    raise RuntimeError(f"{method} failed: {reply['error']}")
                result: dict[str, Any] = reply["result"]
                return result
        raise RuntimeError("the server ended")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
