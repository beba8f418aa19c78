"""The worker and a real memory service in the process of the test, and a front's side of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from jsonschema import Draft202012Validator

from muniment.bridge.calls import Greeting
from muniment.bridge.catalogue import Catalogue
from muniment.bridge.connection import FrontConnection, Worker
from muniment.bridge.protocol import make_server
from muniment.bridge.subscriptions import Changes, Listening
from muniment.bridge.worker import CATALOGUE
from muniment.kit.paths import Home
from muniment.kit.settings import Settings
from muniment.workflows.clients import open_clients

__all__ = ["LEGACY", "MODERN", "Front", "a_worker", "content"]

MODERN = "2026-07-28"
LEGACY = "2025-06-18"

_DEADLINE_SECONDS = 20.0


@asynccontextmanager
async def a_worker(
    home: Home, catalogue: Catalogue = CATALOGUE, settings: Settings | None = None
) -> AsyncIterator[Worker]:
    """What the connections of a worker share. Its memory need not run."""
    async with open_clients(home) as clients:
        changes = Changes(clients)
        server = make_server(catalogue, Listening(changes))
        yield Worker(server, catalogue, clients, settings or Settings(), changes)


class Front:
    """One front's connection, without the socket between."""

    def __init__(
        self,
        worker: Worker,
        cwd: object,
        *,
        profile: str = "context",
        names: str = "reference",
        connection: str = "c" * 32,
        environment: Mapping[str, str] | None = None,
        subscribed: tuple[str, ...] = (),
    ) -> None:
        greeting = Greeting(connection, profile, names, str(cwd), environment or {}, subscribed)
        self._told = asyncio.Event()
        self.connection = FrontConnection(worker, greeting, self._take)
        self.notices: list[dict[str, Any]] = []
        """What came besides replies."""
        self.answered: list[int] = []
        """The numbers of the requests that were answered, in that order."""
        self._numbers = itertools.count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    def send(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        era: str = MODERN,
        number: int | None = None,
    ) -> int:
        """Relay a request without waiting; returns its number."""
        number = next(self._numbers) if number is None else number
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": f"id-{number}", "method": method}
        if params is not None:
            message["params"] = dict(params)
        if era == MODERN:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": era,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            given = message.setdefault("params", {})
            given["_meta"] = envelope | given.get("_meta", {})
        self._replies[number] = asyncio.get_running_loop().create_future()
        client = {"name": "agent", "version": "1"}
        self.connection.receive({"n": number, "era": era, "client": client, "message": message})
        return number

    def cancel(self, number: int) -> None:
        """Take a request back."""
        self.connection.receive({"cancel": number, "reason": "the user pressed escape"})

    async def reply(self, number: int) -> dict[str, Any]:
        """The response to a request."""
        async with asyncio.timeout(_DEADLINE_SECONDS):
            return await self._replies[number]

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, era: str = MODERN
    ) -> dict[str, Any]:
        """The response to this request."""
        return await self.reply(self.send(method, params, era=era))

    async def call(self, tool: str, *, era: str = MODERN, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call, whatever it says.

        Raises:
            AssertionError: The response is a JSON-RPC error.
        """
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments}, era=era)
        assert "result" in response, response
        result: dict[str, Any] = response["result"]
        return result

    async def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The JSON-RPC error of a tool call."""
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "error" in response, response
        error: dict[str, Any] = response["error"]
        return error

    async def hears(self, condition: Callable[[], bool]) -> None:
        """Wait until what has come meets the condition."""
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while not condition():
                self._told.clear()
                await self._told.wait()

    def _take(self, frame: Mapping[str, Any]) -> None:
        self._told.set()
        if "notify" in frame:
            self.notices.append(dict(frame))
            return
        reply = frame["reply"]
        assert reply["id"] == f"id-{frame['n']}"
        self.answered.append(frame["n"])
        self._replies[frame["n"]].set_result(reply)


async def content(front: Front, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answered, checked against what it says to answer."""
    result = await front.call(tool, **arguments)
    assert result["isError"] is False, result
    (text,) = result["content"]
    assert text["type"] == "text"
    structured: dict[str, Any] = result["structuredContent"]
    found = CATALOGUE.find(tool)
    assert found is not None
    Draft202012Validator(found.output_schema).validate(structured)
    if "rendered" in structured:
        assert text["text"] == structured["rendered"]
    elif tool.startswith("code."):
        # Lines for the model, which tests of their own look at.
        assert text["text"]
    else:
        assert json.loads(text["text"]) == structured
    return structured
