"""MCP as the SDK speaks it: its server, with handlers that look things up in the catalogue.

The SDK checks and shapes messages of every revision. What is served depends on the `Call` that
travels as the SDK's lifespan context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import mcp_types as types
import structlog
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from muniment.bridge.arguments import checked_arguments
from muniment.bridge.calls import Call
from muniment.bridge.catalogue import PROFILES, VAULT_FAMILY, Catalogue, Tool
from muniment.bridge.failures import vault_failure
from muniment.bridge.names import near_names
from muniment.bridge.prompts import PREAMBLE, PREAMBLE_DESCRIPTION, preamble
from muniment.bridge.resources import RESOURCES, TEXT, find_resource
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.kit.fence import disarmed

__all__ = ["INSTRUCTIONS", "listed_prompts", "listed_templates", "listed_tools", "make_server"]

_PREAMBLE_SAYS = " The prompt sakur4_system_preamble says when to call what."
_TURNS = (
    "Memory that survives compaction: commit every turn, pin rules as they are stated, recall"
    " instead of guessing." + _PREAMBLE_SAYS
)

INSTRUCTIONS: Mapping[str, str] = {
    "context": _TURNS,
    "vault": (
        "Records that outlive the session: search before you rely on one, remember what will hold,"
        " forget what no longer does." + _PREAMBLE_SAYS
    ),
    "core": _TURNS,
    "all": (
        "Memory that survives compaction: commit turns, pin rules, recall what was said; remember"
        " facts as records, and search them." + _PREAMBLE_SAYS
    ),
}
"""What a harness may show its model, by profile: it names what the profile lists."""

_PUBLIC = CacheHint(ttl_ms=300_000, scope="public")
_LISTED = CacheHint(ttl_ms=10_000, scope="private")
_READ = CacheHint(scope="private")

CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "server/discover": _PUBLIC,
    "tools/list": _PUBLIC,
    "prompts/list": _PUBLIC,
    "resources/templates/list": _LISTED,
    "resources/list": _LISTED,
    "resources/read": _READ,
}
"""How long a client may keep an answer, and whether others may share it.

How long a resource may be kept, its own entry says.
"""

_Context = ServerRequestContext[Call]
_log = structlog.get_logger()


class _Server(Server[Call]):
    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        """As the SDK has them, but our lists never change while a client could look."""
        capabilities = super().get_capabilities(*args, **kwargs)
        for one in (capabilities.tools, capabilities.prompts, capabilities.resources):
            if one is not None:
                one.list_changed = False
        return capabilities


def make_server(
    catalogue: Catalogue, listening: ListenHandler, profile: str = PROFILES[0]
) -> Server[Call]:
    """The SDK's server for the catalogue, which tells who listens of changes."""
    handlers = _Handlers(catalogue)
    return _Server(
        "muniment",
        version=version("muniment"),
        title="Muniment",
        instructions=INSTRUCTIONS[profile],
        cache_hints=CACHE_HINTS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=listening,
    )


class _Handlers:
    """What the SDK calls, one method for each MCP method."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def list_tools(self, ctx: _Context, params: Any) -> types.ListToolsResult:
        greeting = ctx.lifespan_context.greeting
        tools = listed_tools(self._catalogue, greeting.profile, greeting.names)
        return types.ListToolsResult(tools=_only_page(tools, params))

    async def list_prompts(self, ctx: _Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=_only_page(listed_prompts(), params))

    async def list_templates(self, ctx: _Context, params: Any) -> types.ListResourceTemplatesResult:
        templates = _only_page(listed_templates(), params)
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def list_resources(self, ctx: _Context, params: Any) -> types.ListResourcesResult:
        with _protocol_errors():
            context, _ = ctx.lifespan_context.context()
        resources = [
            types.Resource(
                uri=entry.uri(context.project_id),
                name=entry.kind,
                title=entry.title,
                description=entry.description,
                mime_type=TEXT,
            )
            for entry in RESOURCES
        ]
        return types.ListResourcesResult(resources=_only_page(resources, params))

    async def call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call, arguments = ctx.lifespan_context, params.arguments or {}
        tool = self._catalogue.find(params.name, call.greeting.profile, arguments)
        if tool is None:
            raise _unknown_tool(self._catalogue, params.name, call)
        return await _run_tool(tool, call, arguments)

    async def read_resource(
        self, ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        with _protocol_errors(uri=uri):
            found = find_resource(uri)
            if found is None:
                raise _no_resource()
            entry, project_id = found
            text = await entry.read(ctx.lifespan_context, project_id)
        contents = types.TextResourceContents(uri=uri, mime_type=TEXT, text=text)
        return types.ReadResourceResult(contents=[contents], ttl_ms=entry.ttl_ms)

    async def subscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        with _protocol_errors(uri=params.uri):
            if not ctx.lifespan_context.subscriptions.add(params.uri):
                raise _no_resource()
        await ctx.lifespan_context.subscriptions.begun()
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: _Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        ctx.lifespan_context.subscriptions.remove(params.uri)
        return types.EmptyResult()

    async def get_prompt(
        self, ctx: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        with _protocol_errors():
            if params.name != PREAMBLE:
                raise InvalidArgumentError(
                    f"names no prompt; the only one is {PREAMBLE}",
                    reason="PROMPT_UNKNOWN",
                    field="name",
                )
        greeting = ctx.lifespan_context.greeting
        text = preamble(self._catalogue, greeting.profile, greeting.names)
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        return types.GetPromptResult(description=PREAMBLE_DESCRIPTION, messages=[message])


def listed_tools(catalogue: Catalogue, profile: str, names: str) -> list[types.Tool]:
    """The tools as the list of that profile shows them."""
    return [
        types.Tool(
            name=catalogue.spelled(tool, profile, names),
            title=tool.title,
            description=tool.description,
            input_schema=dict(tool.input_schema),
            output_schema=dict(tool.output_schema),
            annotations=types.ToolAnnotations(
                read_only_hint=tool.read_only,
                destructive_hint=False,
                idempotent_hint=tool.idempotent,
                open_world_hint=False,
            ),
        )
        for tool in catalogue.listed(profile)
    ]


def listed_prompts() -> list[types.Prompt]:
    """The prompts as every list shows them."""
    return [types.Prompt(name=PREAMBLE, title="Preamble", description=PREAMBLE_DESCRIPTION)]


def listed_templates() -> list[types.ResourceTemplate]:
    """The resources as templates for any project."""
    return [
        types.ResourceTemplate(
            uri_template=entry.template,
            name=entry.kind,
            title=entry.title,
            description=entry.description,
            mime_type=TEXT,
        )
        for entry in RESOURCES
    ]


async def _run_tool(tool: Tool, call: Call, arguments: dict[str, Any]) -> types.CallToolResult:
    in_vault = tool.family == VAULT_FAMILY
    try:
        checked = checked_arguments(tool.input_schema, arguments, keep_empty=in_vault)
        outcome = await tool.run(call, checked)
    except MunimentError as error:
        if in_vault:
            _log.warning("tool failed", tool=tool.name, reason=error.reason)
            text = types.TextContent(type="text", text=vault_failure(error))
            return types.CallToolResult(content=[text], is_error=True)
        if isinstance(error, InvalidArgumentError):
            raise _protocol_error(error) from error
        _log.warning("tool failed", tool=tool.name, reason=error.reason)
        text = types.TextContent(type="text", text=str(error))
        return types.CallToolResult(content=[text], is_error=True)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=outcome.text)],
        structured_content=dict(outcome.content),
        is_error=False,
    )


def _no_resource() -> InvalidArgumentError:
    templates = ", ".join(entry.template for entry in RESOURCES)
    return InvalidArgumentError(
        f"names no resource; there are {templates}", reason="RESOURCE_UNKNOWN", field="uri"
    )


def _unknown_tool(catalogue: Catalogue, name: str, call: Call) -> MCPError:
    profile, names = call.greeting.profile, call.greeting.names
    listed = [catalogue.spelled(tool, profile, names) for tool in catalogue.listed(profile)]
    known = [catalogue.spelled(tool, profile, names) for tool in catalogue.tools]
    near = near_names(name, listed) or near_names(name, known) or listed
    told = disarmed(name[:100])
    return MCPError(
        types.INVALID_PARAMS, f"name: there is no tool {told}; nearest: {', '.join(near)}"
    )


@contextmanager
def _protocol_errors(**about: str) -> Iterator[None]:
    """Turn our errors into JSON-RPC errors, whose data has also what they are about."""
    try:
        yield
    except MunimentError as error:
        raise _protocol_error(error, **about) from error


def _protocol_error(error: MunimentError, **about: str) -> MCPError:
    wrong = isinstance(error, InvalidArgumentError)
    data = {"reason": error.reason, **({"field": error.field} if error.field else {}), **about}
    code = types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR
    return MCPError(code, str(error), data=data)


def _only_page(items: list[Any], params: Any) -> list[Any]:
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "cursor: the list has one page; leave it out")
    return items
