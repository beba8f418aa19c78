"""The tools that the suite calls, by the names that its scenarios fix."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel

from tests.conformance.samples import (
    ALL_DEFAULTS,
    ALL_ENUMS,
    SCHEMA_2020_12,
    audio,
    embedded,
    form,
    image,
    text,
)

__all__ = ["TOOLS", "Context", "Fixture", "Ran", "done"]

Context = ServerRequestContext[Any, Any]
Ran = types.CallToolResult | types.InputRequiredResult
Run = Callable[[Context, types.CallToolRequestParams], Awaitable[Ran]]

MISSING_CAPABILITY = -32021

_Answer = TypeVar("_Answer", bound=BaseModel)
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class Fixture:
    """One tool."""

    name: str
    run: Run
    schema: Mapping[str, Any] = field(default_factory=lambda: _NO_ARGUMENTS)

    def listed(self) -> types.Tool:
        """As the list shows it."""
        words = self.name.replace("_", " ")
        return types.Tool(
            name=self.name, description=f"Fixture: {words}.", input_schema=dict(self.schema)
        )


def done(*content: types.ContentBlock, is_error: bool = False) -> types.CallToolResult:
    """The result of a tool that ran."""
    return types.CallToolResult(content=list(content), is_error=is_error)


def _says(name: str, *content: types.ContentBlock, is_error: bool = False) -> Fixture:
    async def run(ctx: Context, params: types.CallToolRequestParams) -> Ran:
        return done(*content, is_error=is_error)

    return Fixture(name, run)


async def _log(ctx: Context, content: str) -> None:
    """A log message on the request's own stream, where the client asked for any."""
    note = types.LoggingMessageNotification(
        params=types.LoggingMessageNotificationParams(level="info", data=content)
    )
    await ctx.session.send_notification(note, related_request_id=ctx.request_id)


async def _with_logging(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    for step in ("started", "processing", "completed"):
        await _log(ctx, f"Tool execution {step}")
    return done(text("Logged three times"))


async def _logging_tool(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    if ctx.meta and "io.modelcontextprotocol/logLevel" in ctx.meta:
        await _log(ctx, "asked for")
    return done(text("Logged where that was asked for"))


async def _with_progress(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100)
    return done(text("Went from 0 to 100"))


async def _sampling(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    prompt = types.SamplingMessage(role="user", content=text(_argument(params, "prompt")))
    asked = types.CreateMessageRequestParams(messages=[prompt], max_tokens=100)
    answer = await _ask(ctx, types.CreateMessageRequest(params=asked), types.CreateMessageResult)
    told = answer.content.text if isinstance(answer.content, types.TextContent) else "no text"
    return done(text(f"LLM response: {told}"))


def _eliciting(name: str, message: str | None, schema: Mapping[str, Any]) -> Fixture:
    """A tool that asks with a form; with the message of its argument, where none is given."""

    async def run(ctx: Context, params: types.CallToolRequestParams) -> Ran:
        asked = types.ElicitRequestFormParams(
            message=message or _argument(params, "message"), requested_schema=dict(schema)
        )
        answer = await _ask(ctx, types.ElicitRequest(params=asked), types.ElicitResult)
        told = f"action={answer.action}, content={json.dumps(answer.content)}"
        return done(text(f"Elicitation completed: {told}"))

    return Fixture(name, run, _NO_ARGUMENTS if message else form(message={"type": "string"}))


async def _ask(ctx: Context, request: types.ServerRequest, answer: type[_Answer]) -> _Answer:
    """Ask the client something while the call runs, as the older era does."""
    session: ServerSession = ctx.session
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await session.send_request(request, answer, metadata=related)


def _argument(params: types.CallToolRequestParams, name: str) -> str:
    value = (params.arguments or {}).get(name)
    if not isinstance(value, str):
        raise MCPError(types.INVALID_PARAMS, f"{name}: must be a text")
    return value


async def _missing_capability(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            MISSING_CAPABILITY,
            "Missing required client capability: sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return done(text("The client can sample"))


async def _echo(ctx: Context, params: types.CallToolRequestParams) -> Ran:
    return done(text(json.dumps(params.arguments)))


TOOLS = (
    # The first one listed is called without arguments, and has to succeed.
    _says("test_simple_text", text("This is a simple text response for testing.")),
    _says("test_image_content", image()),
    _says("test_audio_content", audio()),
    _says(
        "test_embedded_resource",
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ),
    _says(
        "test_multiple_content_types",
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data"}'),
    ),
    _says(
        "test_error_handling",
        text("This tool intentionally returns an error for testing"),
        is_error=True,
    ),
    Fixture("test_tool_with_logging", _with_logging),
    Fixture("test_logging_tool", _logging_tool),
    Fixture("test_tool_with_progress", _with_progress),
    Fixture("test_sampling", _sampling, form(prompt={"type": "string"})),
    _eliciting(
        "test_elicitation",
        None,
        form(username={"type": "string"}, email={"type": "string"}),
    ),
    _eliciting("test_elicitation_sep1034_defaults", "Is this right?", ALL_DEFAULTS),
    _eliciting("test_elicitation_sep1330_enums", "Which of these?", ALL_ENUMS),
    Fixture("test_missing_capability", _missing_capability),
    Fixture("json_schema_2020_12_tool", _echo, SCHEMA_2020_12),
    Fixture(
        "test_x_mcp_header",
        _echo,
        form(region={"type": "string", "x-mcp-header": "Region"}),
    ),
)
