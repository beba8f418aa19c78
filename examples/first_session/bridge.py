"""A coding agent's side of MCP: the real client, a real `muniment-mcp`, and a clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Implementation, TextContent, TextResourceContents

from examples.first_session.answers import AnswerError
from examples.first_session.workspace import Workspace, bridge_command

__all__ = ["Bridge", "Timed", "ToolError", "open_bridge"]

_Answer = TypeVar("_Answer")

# The first call of a home starts its services; a call under a kill waits for the restart.
_CALL_SECONDS = 60.0


class ToolError(Exception):
    """A tool refused a call; the message is what it told the agent."""


@dataclass(frozen=True)
class Timed(Generic[_Answer]):
    """An answer and how long it took."""

    answer: _Answer
    milliseconds: float


class Bridge:
    """One MCP connection."""

    def __init__(self, client: Client, started: float) -> None:
        self._client = client
        self._started = started

    @property
    def server(self) -> str:
        """Name and version that the bridge gives itself, and the negotiated revision."""
        info = self._client.server_info
        name = f"{info.name} {info.version}" if info else "a server without a name"
        return f"{name}, MCP {self._client.protocol_version}"

    @property
    def age_milliseconds(self) -> float:
        """How long ago it was spawned."""
        return _since(self._started)

    async def tools(self) -> list[str]:
        """Return the names of the tools."""
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def prompt(self, name: str) -> str:
        """Return a prompt's text."""
        result = await self._client.get_prompt(name)
        return "\n".join(
            message.content.text
            for message in result.messages
            if isinstance(message.content, TextContent)
        )

    async def resource(self, uri: str) -> str:
        """Return a resource's text as it is now."""
        result = await self._client.read_resource(uri, cache_mode="bypass")
        return "\n".join(
            content.text for content in result.contents if isinstance(content, TextResourceContents)
        )

    async def call(self, tool: str, arguments: dict[str, Any]) -> Timed[dict[str, Any]]:
        """Call a tool, wait for the answer and return its structured content.

        Raises:
            ToolError: The tool refused.
            AnswerError: The answer has no structured content.
        """
        before = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        milliseconds = _since(before)
        if result.is_error:
            raise ToolError(f"{tool}: {_text(result)}")
        if not isinstance(result.structured_content, dict):
            raise AnswerError(f"{tool} answered without structured content")
        return Timed(result.structured_content, milliseconds)


@asynccontextmanager
async def open_bridge(workspace: Workspace) -> AsyncIterator[Bridge]:
    """Spawn a bridge in the repository, and end it on leaving."""
    command, *arguments = bridge_command()
    parameters = StdioServerParameters(
        command=command,
        args=arguments,
        env=workspace.variables,
        cwd=workspace.repository,
    )
    agent = Implementation(name="first-session", version="1")
    started = time.perf_counter()
    with workspace.bridge_log.open("a", encoding="utf-8") as log:
        transport = stdio_client(parameters, errlog=log)
        async with Client(
            transport, client_info=agent, read_timeout_seconds=_CALL_SECONDS
        ) as client:
            yield Bridge(client, started)


def _since(before: float) -> float:
    return (time.perf_counter() - before) * 1000


def _text(result: CallToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, TextContent))
