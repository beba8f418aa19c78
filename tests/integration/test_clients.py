"""Real MCP clients, of both eras, use everything that a real bridge has."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, TextResourceContents

from tests.integration.house import House
from tests.support.fronts import bridge_command
from tests.support.homes import KEYS
from tests.support.tools import node, python_with

pytestmark = pytest.mark.timeout(360)

CLIENTS = Path(__file__).with_name("clients")
TOOLS = [
    "memory.commit_episode",
    "memory.pin",
    "memory.recall",
    "code.get_repo_map",
    "code.query_symbol",
    "code.impact_of_change",
    "session.snapshot",
    "session.restore",
    "sakur4.status",
]
OLD_CLIENT = "mcp==1.30.0"


@pytest.fixture
def environment(common_house: House) -> dict[str, str]:
    """What these clients hand to the bridge that they spawn."""
    return {"PATH": os.environ["PATH"], "MUNIMENT_HOME": str(common_house.home.path), **KEYS}


def check(seen: dict[str, Any]) -> None:
    """Demand that a client in a project of its own saw what it should."""
    assert seen["tools"] == TOOLS
    for name in ("pin", "commit", "recall", "status"):
        assert seen[name]["error"] is False, seen[name]
    project = seen["status"]["content"]["project_id"]
    assert seen["pin"]["content"]["anchor_id"].startswith("pin_")
    assert json.loads(seen["commit"]["text"]) == seen["commit"]["content"]
    assert seen["recall"]["content"]["results"][0]["text"] == "the port is 8080"
    assert "text | the port is 8080" in seen["recall"]["text"]
    assert seen["status"]["content"]["project_episodes"] == 1
    assert seen["unknown"]["error"] is True
    assert seen["unknown"]["text"].startswith("corrects: ")
    kinds = ("anchors", "repo-map", "status")
    assert seen["templates"] == [f"sakur4://{kind}/{{project}}" for kind in kinds]
    assert seen["resources"] == [f"sakur4://{kind}/{project}" for kind in kinds]
    assert seen["anchors"] == "[TASK CONTRACT] never force-push"
    assert all(name in seen["prompt"] for name in TOOLS)
    assert seen["refusal"]["code"] == -32602
    assert "nearest: memory.recall" in seen["refusal"]["message"]


def _result(result: CallToolResult) -> dict[str, Any]:
    text = "".join(part.text for part in result.content if isinstance(part, TextContent))
    return {"error": result.is_error, "content": result.structured_content, "text": text}


async def _use(client: Client) -> dict[str, Any]:
    async def call(name: str, **arguments: Any) -> dict[str, Any]:
        return _result(await client.call_tool(name, arguments))

    seen: dict[str, Any] = {
        "tools": [tool.name for tool in (await client.list_tools()).tools],
        "pin": await call("memory.pin", content="never force-push"),
        "commit": await call("memory.commit_episode", role="user", content="the port is 8080"),
        "recall": await call("memory.recall", query="which port"),
        "status": await call("sakur4.status"),
        "unknown": await call("memory.commit_episode", role="user", content="x", corrects="ep_0"),
    }
    templates = (await client.list_resource_templates()).resource_templates
    seen["templates"] = [one.uri_template for one in templates]
    resources = (await client.list_resources()).resources
    seen["resources"] = [str(one.uri) for one in resources]
    (anchors,) = (await client.read_resource(seen["resources"][0])).contents
    assert isinstance(anchors, TextResourceContents)
    seen["anchors"] = anchors.text
    (message,) = (await client.get_prompt("sakur4_system_preamble")).messages
    assert isinstance(message.content, TextContent)
    seen["prompt"] = message.content.text
    with pytest.raises(MCPError) as raised:
        await client.call_tool("memory.recal", {})
    seen["refusal"] = {"code": raised.value.error.code, "message": raised.value.error.message}
    return seen


@pytest.mark.parametrize(
    ("mode", "version"),
    [("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")],
)
async def test_python_client_of_this_version(
    tmp_path: Path, environment: dict[str, str], mode: str, version: str
) -> None:
    (command,) = bridge_command()
    parameters = StdioServerParameters(command=command, env=environment, cwd=tmp_path)
    async with Client(stdio_client(parameters), mode=mode) as client:
        assert client.protocol_version == version
        seen = await _use(client)
    check(seen)


def test_python_client_of_version_1(tmp_path: Path, environment: dict[str, str]) -> None:
    python = python_with("mcp-1", OLD_CLIENT)
    seen = _run([python, CLIENTS / "python_1.py"], tmp_path, environment)
    assert seen["version"] == "2025-11-25"
    check(seen)


def test_typescript_client(tmp_path: Path, environment: dict[str, str]) -> None:
    check(_run([node(), CLIENTS / "typescript.mjs"], tmp_path, environment))


def _run(command: list[str | Path], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [*command, *bridge_command()],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
