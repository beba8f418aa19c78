"""Bridges as a harness spawns them: requests go in without waiting, answers are found by id."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muniment.kit.paths import Home
from tests.support.homes import KEYS

__all__ = ["LEGACY", "MODERN", "BridgeProcess", "bridge_command"]

MODERN = "2026-07-28"
LEGACY = "2025-06-18"

_DEADLINE_SECONDS = 60.0
_EXIT_SECONDS = 10.0


def bridge_command() -> list[str]:
    """What a harness spawns."""
    return [str(Path(sys.executable).with_name("muniment-mcp"))]


class BridgeProcess:
    """One `muniment-mcp`. Its services are whatever the home has, or will have by its calls."""

    def __init__(
        self,
        home: Home,
        cwd: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        name: str = "agent",
    ) -> None:
        """Spawn it.

        Args:
            home: Its data home, which it is told by MUNIMENT_HOME.
            cwd: Where it is spawned, which decides the project.
            arguments: Its command line.
            environment: The rest of its environment; default: PATH, and where keys are kept.
            name: What its harness calls itself.
        """
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._client = {"name": name, "version": "1"}
        self.process = subprocess.Popen(
            [*bridge_command(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd=cwd,
            env={
                **KEYS,
                **({"PATH": os.environ["PATH"]} if environment is None else environment),
                "MUNIMENT_HOME": str(home.path),
            },
        )
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._answers: dict[Any, dict[str, Any]] = {}
        self._ended = False
        self.on_answer: Callable[[], None] = lambda: None
        """Called by the reader after each answer."""
        self._reader = threading.Thread(target=self._read, name="harness", daemon=True)
        self._reader.start()

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
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout, self._said):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue

    # --- Requests

    def initialize(self) -> dict[str, Any]:
        """Shake hands in the older era."""
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": self._client}
        result = self.result(self.send("initialize", params, era=LEGACY))
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, *, era: str = MODERN
    ) -> int:
        """Send a request; returns its id, at once."""
        number = next(self._numbers)
        self.write(self.request(number, method, params, era))
        return number

    def send_call(self, tool: str, *, era: str = MODERN, **arguments: Any) -> int:
        """Send a tool call; returns its id, at once."""
        return self.send("tools/call", {"name": tool, "arguments": arguments}, era=era)

    def call(self, tool: str, *, era: str = MODERN, **arguments: Any) -> dict[str, Any]:
        """A tool's structured answer."""
        return self.content(self.send_call(tool, era=era, **arguments))

    def request(
        self, number: int, method: str, params: Mapping[str, Any] | None, era: str
    ) -> dict[str, Any]:
        """A request as it goes over the wire."""
        body = dict(params or {})
        if era == MODERN:
            body["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": self._client,
            }
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": body}

    def write(self, *messages: object) -> None:
        """Write messages, one a line, in one piece."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        self.process.stdin.flush()

    def close_input(self) -> int:
        """End it as a harness does; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(_EXIT_SECONDS)

    # --- Answers

    def answer(self, number: int, *, seconds: float = _DEADLINE_SECONDS) -> dict[str, Any]:
        """The response to a request.

        Raises:
            AssertionError: There was none within the time.
        """
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or self._ended, timeout=seconds)
            answer = self._answers.get(number)
        assert answer is not None, f"request {number} was not answered; {self.said()}"
        return answer

    def answer_of_one(self, *numbers: object, seconds: float = _DEADLINE_SECONDS) -> dict[str, Any]:
        """The response to whichever of these is answered first; it is not kept.

        Raises:
            AssertionError: There was none within the time.
        """

        def found() -> list[object]:
            return [number for number in numbers if number in self._answers]

        with self._changed:
            self._changed.wait_for(lambda: found() or self._ended, timeout=seconds)
            assert found(), f"none of {numbers} was answered; {self.said()}"
            return self._answers.pop(found()[0])

    def result(self, number: int) -> dict[str, Any]:
        """The result of a request that succeeds."""
        answer = self.answer(number)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def content(self, number: int) -> dict[str, Any]:
        """The structured content of a tool call that succeeds."""
        result = self.result(number)
        assert not result["isError"], result
        content: dict[str, Any] = result["structuredContent"]
        return content

    def text(self, number: int) -> str:
        """The text of a resource that was read."""
        (part,) = self.result(number)["contents"]
        return str(part["text"])

    def answered(self) -> int:
        """How many requests have been answered."""
        with self._changed:
            return len(self._answers)

    def said(self) -> str:
        """What it wrote to standard error."""
        self._said.seek(0)
        return f"the bridge said: {self._said.read().decode() or 'nothing'}"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            with self._changed:
                assert message["id"] not in self._answers, f"answered twice: {message['id']}"
                self._answers[message["id"]] = message
                self._changed.notify_all()
            self.on_answer()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
