"""The MCP Inspector's command line, from npm, in both eras and over both transports."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.house import House
from tests.support.fronts import bridge_command
from tests.support.http_server import HttpServer
from tests.support.stored import stored_turns
from tests.support.tools import ROOT, node_24

pytestmark = pytest.mark.timeout(300)

INSPECTOR = ROOT / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
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
LISTS = {
    "tools/list": ("tools", "name", TOOLS),
    "prompts/list": ("prompts", "name", ["sakur4_system_preamble"]),
    "resources/templates/list": (
        "resourceTemplates",
        "uriTemplate",
        [f"sakur4://{kind}/{{project}}" for kind in ("anchors", "repo-map", "status")],
    ),
}
LOAD_REQUESTS = 200
LOAD_AT_ONCE = 16


@dataclass(frozen=True)
class Inspector:
    """The Inspector before one server, in a project of its own."""

    server: tuple[str, ...]
    era: str
    folder: Path

    def ask(self, method: str, *options: str) -> dict[str, Any]:
        """The result of a request that succeeds."""
        node = node_24()
        done = subprocess.run(
            [
                *(node, str(INSPECTOR), "--cli", "--protocol-era", self.era),
                *("--format", "json", "-q", *self.server, "--method", method, *options),
            ],
            cwd=self.folder,
            env={
                "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.folder / "its-home"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{method}: {done.returncode}: {done.stdout}{done.stderr}"
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        return result

    def call(self, tool: str, arguments: Mapping[str, Any], *options: str) -> dict[str, Any]:
        """What a tool call gives, or a load of them."""
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return self.ask("tools/call", *given, *options)


@pytest.fixture(scope="module")
def environment(common_house: House) -> dict[str, str]:
    return {
        "MUNIMENT_HOME": str(common_house.home.path),
        "MUNIMENT_KEY_FOLDER": str(common_house.key_folder),
    }


@pytest.fixture(scope="module")
def http(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    with HttpServer(cwd=tmp_path_factory.mktemp("http"), environment=environment) as server:
        yield server
        assert server.stop() == 0


def inspect(
    transport: str, era: str, http: HttpServer, environment: dict[str, str], folder: Path
) -> Inspector:
    if transport == "http":
        url = f"{http.url}?project={quote(str(folder))}"
        return Inspector(("--server-url", url, "--transport", "http"), era, folder)
    passed = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    return Inspector((*passed, *bridge_command()), era, folder)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_it_lists_and_calls(
    transport: str, era: str, http: HttpServer, environment: dict[str, str], tmp_path: Path
) -> None:
    inspector = inspect(transport, era, http, environment, tmp_path)
    for method, (key, name, expected) in LISTS.items():
        # Of the tools it says what a strict provider would refuse, and fails for it.
        strict = ("--strict",) if method == "tools/list" else ()
        assert [one[name] for one in inspector.ask(method, *strict)[key]] == expected
    commit = inspector.call("memory.commit_episode", {"role": "user", "content": "port 8080"})
    assert commit["structuredContent"]["seq"] > 0
    # The stateless era stamps each answer with who gave it.
    assert ("_meta" in commit) is (era == "modern")
    recall = inspector.call("memory.recall", {"query": "port"})
    assert recall["structuredContent"]["results"][0]["text"] == "port 8080"
    uris = [one["uri"] for one in inspector.ask("resources/list")["resources"]]
    project = recall["structuredContent"]["project_id"]
    assert uris == [f"sakur4://anchors/{project}", f"sakur4://status/{project}"]
    status = inspector.ask("resources/read", "--uri", uris[1])["contents"][0]["text"]
    assert "project_episodes: 1" in status


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_it_finds_the_newest_era_by_itself(
    transport: str, http: HttpServer, environment: dict[str, str], tmp_path: Path
) -> None:
    inspector = inspect(transport, "auto", http, environment, tmp_path)
    assert "_meta" in inspector.call("sakur4.status", {})


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_its_load_is_carried(
    common_house: House,
    transport: str,
    era: str,
    http: HttpServer,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    inspector = inspect(transport, era, http, environment, tmp_path)
    found = inspector.call(
        "memory.commit_episode",
        {"role": "user", "content": "the same words again"},
        *("--load", "--load-requests", str(LOAD_REQUESTS)),
        *("--load-concurrency", str(LOAD_AT_ONCE)),
    )
    assert (found["requests"], found["ok"]) == (LOAD_REQUESTS, LOAD_REQUESTS), found
    assert found["errors"] == found["toolErrors"] == 0
    stored = stored_turns(common_house.home, tmp_path)
    assert len({turn.episode_id for turn in stored}) == len(stored) == LOAD_REQUESTS
