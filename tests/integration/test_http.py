"""What `muniment-mcp --http` answers, message by message, in both eras."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from muniment.bridge.eras import SUPPORTED_VERSIONS
from muniment.bridge.framing import LINE_LIMIT_BYTES
from muniment.bridge.protocol import INSTRUCTIONS
from tests.integration.house import House
from tests.support.http_client import LEGACY, MODERN, Caller, Reply, modern_meta
from tests.support.http_server import HttpServer

pytestmark = pytest.mark.timeout(240)

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

METHODS = (
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "subscriptions/listen",
    "completion/complete",
    "ping",
    "initialize",
    "nonsense",
)


@pytest.fixture(scope="module")
def server(common_house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server of a house that is up."""
    environment = {
        "MUNIMENT_HOME": str(common_house.home.path),
        "MUNIMENT_KEY_FOLDER": str(common_house.key_folder),
    }
    with HttpServer(cwd=tmp_path_factory.mktemp("served"), environment=environment) as server:
        yield server


@pytest.fixture
def caller(server: HttpServer, tmp_path: Path) -> Caller:
    """A client in a project of its own."""
    return Caller(server, f"/mcp?project={quote(str(tmp_path))}")


def check_refusal(reply: Reply, status: int, code: int, *mentions: str) -> None:
    assert (reply.status, reply.error["code"]) == (status, code), reply.message
    assert "mcp-session-id" not in reply.headers
    for text in mentions:
        assert text in reply.error["message"]


# --- The body, whatever the era


@pytest.mark.parametrize(
    ("body", "code", "mentions"),
    [
        (b"{", -32700, "Parse error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, "NaN"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}', -32700, "not UTF-8"),
        (b"", -32600, "the body is empty"),
        (b" \n", -32600, "the body is empty"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, "batches are not supported"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, '"jsonrpc" must be "2.0"'),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, '"id" must be'),
        (b'{"jsonrpc":"2.0","id":1,"method":"m\\ud800"}', -32600, "surrogate"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 200_000, -32600, "nested"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', -32602, "must be an object"),
    ],
)
def test_what_is_no_message_is_refused_in_both_eras(
    caller: Caller, body: bytes, code: int, mentions: str
) -> None:
    for headers in ({}, {"MCP-Protocol-Version": MODERN}, {"MCP-Protocol-Version": LEGACY}):
        check_refusal(caller.post(body, headers), 400, code, mentions)


def test_a_refusal_names_the_request(caller: Caller) -> None:
    reply = caller.post({"jsonrpc": "1.0", "id": "mine", "method": "ping"})
    assert reply.message["id"] == "mine"


def test_a_byte_order_mark_is_no_fault(caller: Caller) -> None:
    message, headers = caller.modern("server/discover")
    marked = caller.post(b"\xef\xbb\xbf" + json.dumps(message).encode(), headers)
    assert marked.result["supportedVersions"] == list(SUPPORTED_VERSIONS)


def test_what_is_too_long_is_refused_before_it_has_come(caller: Caller) -> None:
    """Announced, only the headers are sent; in chunks, as much as the limit and no more."""
    connection = caller.connect()
    connection.putrequest("POST", "/mcp")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(LINE_LIMIT_BYTES + 1))
    connection.endheaders()
    announced = connection.getresponse()
    assert announced.status == 413
    told = json.loads(announced.read())["error"]["message"]
    assert f"longer than {LINE_LIMIT_BYTES} bytes; nothing was used" in told
    connection.close()

    connection = caller.connect()
    chunks = iter([b" " * 1024 * 1024] * (LINE_LIMIT_BYTES // 1024 // 1024) + [b"x"])
    connection.request(
        "POST", "/mcp", chunks, {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


def test_what_comes_slowly_delays_nobody(caller: Caller) -> None:
    connection = caller.connect()
    connection.putrequest("POST", "/mcp")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"{")
    assert caller.ask("server/discover").status == 200
    connection.close()


def test_other_paths_methods_and_types(caller: Caller) -> None:
    message, headers = caller.modern("server/discover")
    assert caller.at("/").post(message, headers).status == 404
    assert caller.at("/mcp/vaults").post(message, headers).status == 404
    told = caller.at("/mcp/vault").post(message, headers).message["result"]["instructions"]
    assert told == INSTRUCTIONS["vault"]
    for method in ("GET", "DELETE"):
        assert caller.send(method, None, headers).status == 405
    assert caller.send("PUT", b"{}", headers).status == 405
    assert caller.post(message, {**headers, "Content-Type": "text/plain"}).status == 400
    assert caller.post(message, {**headers, "Accept": "text/html"}).status == 406
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert caller.post(answer, headers).status == 400


# --- The era of 2026-07-28


@pytest.mark.parametrize("method", METHODS)
def test_a_modern_request_without_its_envelope(caller: Caller, method: str) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    message = {"jsonrpc": "2.0", "id": 7, "method": method}
    for params in (None, {}, {"name": "memory.recall"}):
        reply = caller.post(message if params is None else {**message, "params": params}, headers)
        assert (reply.status, reply.message["id"]) == (400, 7)
        assert reply.error["code"] == -32602
        assert reply.error["message"] == "Invalid params: request _meta is missing"


@pytest.mark.parametrize("lacking", ["protocolVersion", "clientCapabilities"])
def test_an_envelope_that_lacks_something(caller: Caller, lacking: str) -> None:
    key = f"io.modelcontextprotocol/{lacking}"
    envelope = {name: value for name, value in modern_meta().items() if name != key}
    message, headers = caller.modern("tools/list", {"_meta": envelope})
    check_refusal(caller.post(message, headers), 400, -32602, key)


def test_the_client_need_not_name_itself(caller: Caller) -> None:
    envelope = modern_meta()
    del envelope["io.modelcontextprotocol/clientInfo"]
    assert caller.ask("tools/list", {"_meta": envelope}).result["tools"]


@pytest.mark.parametrize(
    "changed",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": LEGACY},
        {"MCP-Protocol-Version": "2099-01-01"},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"Mcp-Name": None},
        {"Mcp-Name": "memory.pin"},
        {"Mcp-Name": "=?base64?bWVtb3J5LnBpbg==?="},
    ],
)
def test_headers_that_do_not_match_the_body(caller: Caller, changed: dict[str, str | None]) -> None:
    call = {"name": "memory.recall", "arguments": {"query": "x"}}
    message, headers = caller.modern("tools/call", call)
    sent = {name: value for name, value in {**headers, **changed}.items() if value is not None}
    check_refusal(caller.post(message, sent), 400, HEADER_MISMATCH)


@pytest.mark.parametrize("version", ["2099-01-01", "v999.0.0", LEGACY])
def test_a_version_that_is_not_spoken(caller: Caller, version: str) -> None:
    message, headers = caller.modern("tools/list", {"_meta": modern_meta(version)})
    reply = caller.post(message, {**headers, "MCP-Protocol-Version": version})
    check_refusal(reply, 400, UNSUPPORTED_VERSION)
    data = {"supported": list(SUPPORTED_VERSIONS), "requested": version}
    assert reply.error["data"] == data


@pytest.mark.parametrize(
    "method",
    ["nonsense", "ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get"],
)
def test_a_method_that_this_era_has_not(caller: Caller, method: str) -> None:
    check_refusal(caller.ask(method), 404, -32601)


def test_a_stale_session_means_nothing_to_a_modern_request(caller: Caller) -> None:
    message, headers = caller.modern("tools/call", {"name": "sakur4.status", "arguments": {}})
    for session in ("gone", caller.open_session().headers["Mcp-Session-Id"]):
        reply = caller.post(message, {**headers, "Mcp-Session-Id": session})
        assert reply.content == caller.call("sakur4.status")
        assert "mcp-session-id" not in reply.headers


def test_a_modern_notification_is_taken_and_dropped(caller: Caller) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert caller.post(note, {"MCP-Protocol-Version": MODERN}).status == 202


def test_wrong_arguments_name_their_field(caller: Caller) -> None:
    call = {"name": "memory.recall", "arguments": {"query": "x", "k": "many"}}
    check_refusal(caller.ask("tools/call", call), 400, -32602, "k: ")
    message, headers = caller.modern("prompts/get", {"name": "x", "arguments": 5})
    check_refusal(caller.post(message, headers), 400, -32602, "arguments", "prompts/get")
    unknown = caller.ask("resources/read", {"uri": "sakur4://nothing/x"})
    check_refusal(unknown, 400, -32602, "uri: ")
    assert unknown.error["data"]["uri"] == "sakur4://nothing/x"


def test_cache_hints(caller: Caller) -> None:
    uri = caller.ask("resources/list").result["resources"][0]["uri"]
    for method, params, milliseconds, scope in (
        ("server/discover", {}, 300_000, "public"),
        ("tools/list", {}, 300_000, "public"),
        ("prompts/list", {}, 300_000, "public"),
        ("resources/list", {}, 10_000, "private"),
        ("resources/templates/list", {}, 10_000, "private"),
        ("resources/read", {"uri": uri}, 0, "private"),
    ):
        result = caller.ask(method, params).result
        assert (result["ttlMs"], result["cacheScope"]) == (milliseconds, scope), method
        assert result["resultType"] == "complete"


# --- The era of sessions


def test_a_session_from_beginning_to_end(caller: Caller) -> None:
    session = caller.open_session()
    assert session.ask_session("ping").result == {}
    tools = session.ask_session("tools/list").result
    assert "ttlMs" not in tools
    assert next(tool["name"] for tool in tools["tools"]) == "memory.commit_episode"
    assert session.ask_session("server/discover").error["code"] == -32601
    assert session.send("DELETE").status == 200
    assert session.ask_session("ping").status == 404
    assert session.send("DELETE").status == 404


def test_older_revisions_are_spoken(caller: Caller) -> None:
    for version in SUPPORTED_VERSIONS[1:]:
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        assert caller.post(message).result["protocolVersion"] == version


def test_without_a_session_none_is_made(caller: Caller) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for headers in ({}, {"MCP-Protocol-Version": LEGACY}):
        check_refusal(caller.post(message, headers), 400, -32600, "no session", "initialize")
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    check_refusal(caller.post(note), 400, -32600, "no session")
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    check_refusal(caller.post(answer), 400, -32600, "without a session")
    stale = caller.post(message, {"Mcp-Session-Id": "0" * 32})
    assert stale.status == 404


def test_the_calls_of_a_session_share_their_memory_session(caller: Caller) -> None:
    one, other = caller.open_session(), caller.open_session()
    seen = [
        session.call_session("memory.commit_episode", role="user", content="x")["session_id"]
        for session in (one, one, other)
    ]
    assert seen[0] == seen[1] != seen[2]
    assert all(name.startswith("ses_") for name in seen)


def test_a_modern_request_has_no_session_of_its_own(caller: Caller) -> None:
    kept = caller.call("memory.commit_episode", role="user", content="x")
    assert kept["session_source"] == "none"
    assert "session_id" not in kept
    kept = caller.call("memory.commit_episode", role="user", content="x", session_id="mine")
    assert (kept["session_id"], kept["session_source"]) == ("mine", "argument")


# --- One URL for each profile, one project for each caller


def test_profiles_have_urls(caller: Caller) -> None:
    query = caller.path.partition("?")[2]
    names = {
        path: [
            tool["name"] for tool in caller.at(f"{path}?{query}").ask("tools/list").result["tools"]
        ]
        for path in ("/mcp", "/mcp/safe", "/mcp/core", "/mcp/all")
    }
    assert names["/mcp"][0] == "memory.commit_episode"
    assert names["/mcp/safe"] == [name.replace(".", "_") for name in names["/mcp"]]
    assert set(names["/mcp/core"]) <= set(names["/mcp/all"])
    safe = caller.at(f"/mcp/safe?{query}")
    kept = safe.call("memory_commit_episode", role="user", content="safe", session_id="s")
    found = caller.call("memory.recall", query="safe")["results"]
    assert [hit["seq"] for hit in found] == [kept["seq"]]


def test_projects_are_apart(server: HttpServer, caller: Caller, tmp_path: Path) -> None:
    caller.call("memory.commit_episode", role="user", content="the secret door", session_id="s")
    elsewhere = Caller(server)
    assert elsewhere.call("memory.recall", query="secret door")["results"] == []
    assert (
        elsewhere.call("sakur4.status")["project_id"] != caller.call("sakur4.status")["project_id"]
    )
    assert caller.call("sakur4.status")["project_root"] == str(tmp_path)


def test_a_project_that_does_not_exist(server: HttpServer, tmp_path: Path) -> None:
    lost = Caller(server, f"/mcp?project={quote(str(tmp_path / 'nowhere'))}")
    result = lost.ask("tools/call", {"name": "sakur4.status", "arguments": {}}).result
    assert result["isError"]
    assert "nowhere, which is no folder" in result["content"][0]["text"]
    assert "is no folder" in lost.ask("resources/list").error["message"]


def test_two_requests_in_one_packet(caller: Caller) -> None:
    """The second of a connection is answered after the first, and sees what that has done."""
    text = "pipelined on one connection"
    commit = {"role": "user", "content": text, "session_id": "p"}
    packet = b""
    for name, arguments in (
        ("memory.commit_episode", commit),
        ("memory.recall", {"query": text, "session_id": "p"}),
    ):
        message, headers = caller.modern("tools/call", {"name": name, "arguments": arguments})
        body = json.dumps(message).encode()
        lines = [
            f"POST {caller.path} HTTP/1.1",
            f"Host: 127.0.0.1:{caller.server.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
            *(f"{key}: {value}" for key, value in headers.items()),
        ]
        packet += "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    with socket.create_connection((caller.server.host, caller.server.port), timeout=60) as wire:
        wire.sendall(packet)
        answered = b""
        while answered.count(b'"jsonrpc"') < 2:
            received = wire.recv(65536)
            assert received, answered
            answered += received
    assert answered.rindex(text.encode()) > answered.rindex(b"HTTP/1.1 200")
