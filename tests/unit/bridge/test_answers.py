"""The front's own answers, held against those of the SDK's server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types.methods import parse_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from muniment.bridge.answers import Answers
from muniment.bridge.eras import HANDSHAKE_VERSIONS, MODERN_VERSION, SUPPORTED_VERSIONS, Era
from muniment.bridge.framing import Refusal
from muniment.bridge.manifest import MANIFEST_PATH, Manifest
from tests.unit.bridge.manifest_fixture import MANIFEST
from tests.unit.bridge.wire import DEADLINE_SECONDS, initialize, modern, request

LISTS = ("tools/list", "prompts/list", "resources/templates/list")


@pytest.fixture
def answers(manifest: Path) -> Answers:
    return Answers(Manifest(str(manifest)), "context", "reference")


def ours(answers: Answers, method: str, version: str) -> dict[str, Any]:
    encoded = answers.result(method, Era(version, None), {})
    assert encoded is not None
    result: dict[str, Any] = json.loads(encoded)
    return result


def sdk_server() -> Server[Any]:
    """What the SDK serves when it is given the same things."""
    listed: dict[str, Any] = json.loads(json.dumps(MANIFEST))["profiles"]["context"]["reference"]
    info: Any = MANIFEST["server_info"]
    instructions: Any = MANIFEST["instructions"]
    hints: Any = MANIFEST["cache"]

    async def tools(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": listed["tools"]})

    async def prompts(ctx: ServerRequestContext[Any], params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": listed["prompts"]})

    async def templates(
        ctx: ServerRequestContext[Any], params: Any
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate(
            {"resourceTemplates": listed["resource_templates"]}
        )

    async def resources(ctx: ServerRequestContext[Any], params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def subscribe(ctx: ServerRequestContext[Any], params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    return Server(
        info["name"],
        version=info["version"],
        title=info["title"],
        instructions=instructions["context"],
        cache_hints={
            method: CacheHint(ttl_ms=hint["ttlMs"], scope=hint["cacheScope"])
            for method, hint in hints.items()
        },
        on_list_tools=tools,
        on_list_prompts=prompts,
        on_list_resource_templates=templates,
        on_list_resources=resources,
        on_subscribe_resource=subscribe,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )


async def sdk_answers(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    """The SDK's results of these requests, on one connection."""
    server = sdk_server()
    results: list[dict[str, Any]] = []
    with anyio.fail_after(DEADLINE_SECONDS):
        async with (
            create_client_server_memory_streams() as (client, (reading, writing)),
            anyio.create_task_group() as tasks,
        ):
            options = server.create_initialization_options(NotificationOptions())
            tasks.start_soon(server.run, reading, writing, options)
            from_server, to_server = client
            for message in requests:
                await to_server.send(
                    SessionMessage(types.jsonrpc_message_adapter.validate_python(message))
                )
                answer = await from_server.receive()
                assert isinstance(answer, SessionMessage)
                dumped = answer.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
                results.append(dumped["result"])
            tasks.cancel_scope.cancel()
    return results


async def test_modern_answers_are_the_sdks(answers: Answers) -> None:
    theirs = await sdk_answers(*(modern(n, method) for n, method in enumerate(LISTS)))
    for method, expected in zip(LISTS, theirs, strict=True):
        assert ours(answers, method, MODERN_VERSION) == expected


async def test_discovery_is_the_sdks_but_for_the_older_versions(answers: Answers) -> None:
    (expected,) = await sdk_answers(modern(1, "server/discover"))
    found = ours(answers, "server/discover", MODERN_VERSION)
    assert found.pop("supportedVersions") == list(SUPPORTED_VERSIONS)
    assert expected.pop("supportedVersions") == [MODERN_VERSION]
    assert found == expected


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_legacy_answers_are_the_sdks(answers: Answers, version: str) -> None:
    methods = ("initialize", *LISTS, "ping")
    requests = [initialize(0, version), *(request(n + 1, m) for n, m in enumerate(methods[1:]))]
    theirs = await sdk_answers(*requests)
    for method, expected in zip(methods, theirs, strict=True):
        assert ours(answers, method, version) == expected


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_legacy_answers_fit_the_sdks_client(answers: Answers, version: str) -> None:
    for method in ("initialize", "ping", *LISTS):
        result = ours(answers, method, version)
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & result.keys()
        parse_server_result(method, version, result)


def test_modern_answers_fit_the_sdks_client(answers: Answers) -> None:
    for method in ("server/discover", *LISTS):
        result = ours(answers, method, MODERN_VERSION)
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "muniment"
        parse_server_result(method, MODERN_VERSION, result)


@pytest.mark.parametrize(
    ("profile", "names"),
    [
        ("context", "reference"),
        ("context", "safe"),
        ("vault", "safe"),
        ("core", "safe"),
        ("all", "safe"),
    ],
)
def test_the_packages_own_manifest_answers_everything(profile: str, names: str) -> None:
    own = Answers(Manifest(MANIFEST_PATH), profile, names)
    for version in SUPPORTED_VERSIONS:
        opening = "server/discover" if version == MODERN_VERSION else "initialize"
        for method in (opening, *LISTS):
            parse_server_result(method, version, ours(own, method, version))


def test_older_revisions_do_not_see_newer_members(answers: Answers) -> None:
    members = {
        version: set(ours(answers, "tools/list", version)["tools"][0])
        for version in (*HANDSHAKE_VERSIONS, MODERN_VERSION)
    }
    oldest = {"name", "description", "inputSchema"}
    assert members["2024-11-05"] == oldest
    assert members["2025-03-26"] == oldest | {"annotations"}
    newest = oldest | {"annotations", "title", "outputSchema"}
    for version in ("2025-06-18", "2025-11-25", MODERN_VERSION):
        assert members[version] == newest
    (prompt,) = ours(answers, "prompts/list", "2025-03-26")["prompts"]
    assert "title" not in prompt
    assert prompt["arguments"] == [{"name": "project", "required": True}]
    (template,) = ours(answers, "resources/templates/list", "2024-11-05")["resourceTemplates"]
    assert "title" not in template
    assert "annotations" in template
    assert "title" not in ours(answers, "initialize", "2025-03-26")["serverInfo"]


def test_answers_are_encoded_once(answers: Answers) -> None:
    for method in LISTS:
        first = answers.result(method, Era(MODERN_VERSION, None), {})
        assert answers.result(
            method, Era(MODERN_VERSION, {"name": "other", "version": ""}), {}
        ) is (first)


def test_cursors_are_unknown(answers: Answers) -> None:
    for method in LISTS:
        for version in (MODERN_VERSION, HANDSHAKE_VERSIONS[0]):
            with pytest.raises(Refusal, match="unknown cursor") as refused:
                answers.result(method, Era(version, None), {"cursor": "page-2"})
            assert refused.value.code == -32602
        assert answers.result(method, Era(version, None), {"cursor": None})


def test_the_rest_is_somebody_elses(answers: Answers) -> None:
    for method, version in (
        ("tools/call", MODERN_VERSION),
        ("resources/list", HANDSHAKE_VERSIONS[0]),
        ("ping", MODERN_VERSION),
        ("server/discover", HANDSHAKE_VERSIONS[0]),
    ):
        assert answers.result(method, Era(version, None), {}) is None
