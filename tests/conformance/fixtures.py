"""A server of the SDK that holds what the suite's scenarios ask for by fixed names.

None of it is ours: what is tested with it is the HTTP stack in front, and that this carries
everything that MCP has, also what the product does not use.
"""

from __future__ import annotations

import re

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from muniment.bridge.protocol import CACHE_HINTS
from tests.conformance.inputs import INPUT_PROMPT, INPUT_TOOLS, prompt_with_input
from tests.conformance.samples import PNG, embedded, image, message, text
from tests.conformance.tools import TOOLS, Context, Fixture, Ran, done

__all__ = ["make_fixtures"]

_NAME = "muniment-conformance"
_TEMPLATE = "test://template/{id}/data"
_TEMPLATED = re.compile(r"test://template/(?P<id>[^/]+)/data")

_RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", None),
    "test://watched-resource": ("text/plain", "Somebody watches this."),
}
"""Type and text by URI; those without a text are a picture."""

_PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    INPUT_PROMPT: (),
}
"""Arguments by name."""


def make_fixtures() -> Server[dict[str, object]]:
    """The server."""
    bus = InMemorySubscriptionBus()
    tools = _Tools(bus)
    server = Server(
        _NAME,
        version="1",
        cache_hints=CACHE_HINTS,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_subscribe_resource=_accept,
        on_unsubscribe_resource=_accept,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
        on_subscriptions_listen=ListenHandler(bus),
    )
    # Not as an argument: the SDK warns of that, since the modern era has it no more.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _accept)
    boundary = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=_NAME)
    server.middleware.append(boundary)
    return server


class _Tools:
    """All of the tools, with those that need the bus."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self._bus = bus
        fixtures = (
            *TOOLS,
            *INPUT_TOOLS,
            Fixture("test_trigger_tool_change", self._change_tools),
            Fixture("test_trigger_prompt_change", self._change_prompts),
        )
        self._by_name = {fixture.name: fixture for fixture in fixtures}

    async def list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """All of them, on one page."""
        return types.ListToolsResult(tools=[one.listed() for one in self._by_name.values()])

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Ran:
        """Run the tool that is named."""
        fixture = self._by_name.get(params.name)
        if fixture is None:
            raise MCPError(types.INVALID_PARAMS, f"name: there is no tool {params.name}")
        return await fixture.run(ctx, params)

    async def _change_tools(self, ctx: Context, params: types.CallToolRequestParams) -> Ran:
        await self._bus.publish(ToolsListChanged())
        return done(text("Said that the tools changed"))

    async def _change_prompts(self, ctx: Context, params: types.CallToolRequestParams) -> Ran:
        await self._bus.publish(PromptsListChanged())
        return done(text("Said that the prompts changed"))


async def _list_resources(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    resources = [
        types.Resource(uri=uri, name=uri.removeprefix("test://"), mime_type=kind)
        for uri, (kind, _) in _RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=resources)


async def _list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template=_TEMPLATE, name="template")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(
    ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = params.uri
    contents: types.TextResourceContents | types.BlobResourceContents
    if uri in _RESOURCES:
        kind, content = _RESOURCES[uri]
        if content is None:
            contents = types.BlobResourceContents(uri=uri, mime_type=kind, blob=PNG)
        else:
            contents = types.TextResourceContents(uri=uri, mime_type=kind, text=content)
    elif found := _TEMPLATED.fullmatch(uri):
        content = f'{{"id":"{found["id"]}","templateTest":true}}'
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=content)
    else:
        raise MCPError(types.INVALID_PARAMS, "uri: names no resource", data={"uri": uri})
    return types.ReadResourceResult(contents=[contents])


async def _list_prompts(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    prompts = [
        types.Prompt(
            name=name,
            description=f"Fixture: {name.replace('_', ' ')}.",
            arguments=[types.PromptArgument(name=one, required=True) for one in arguments],
        )
        for name, arguments in _PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=prompts)


async def _get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    if params.name not in _PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"name: there is no prompt {params.name}")
    if missing := [name for name in _PROMPTS[params.name] if name not in given]:
        raise MCPError(types.INVALID_PARAMS, f"{missing[0]}: is missing")
    if params.name == INPUT_PROMPT:
        return await prompt_with_input(ctx, params)
    contents: dict[str, list[types.ContentBlock]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            embedded(given.get("resourceUri", ""), "text/plain", "Embedded resource content."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
    }
    return types.GetPromptResult(messages=[message(one) for one in contents[params.name]])


async def _complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    typed = params.argument.value
    values = [word for word in ("paris", "park", "party", "tested") if word.startswith(typed)]
    completion = types.Completion(values=values, total=len(values), has_more=False)
    return types.CompleteResult(completion=completion)


async def _accept(ctx: Context, params: types.RequestParams) -> types.EmptyResult:
    return types.EmptyResult()
