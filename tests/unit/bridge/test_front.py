"""What a harness gets from the front, through its real process and its real wire."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muniment.bridge.callers import project_of
from muniment.bridge.framing import DEPTH_LIMIT, LINE_LIMIT_BYTES
from muniment.kit.paths import Home
from tests.unit.bridge.wire import (
    MODERN_META,
    FrontProcess,
    WorkerSocket,
    initialize,
    modern,
    request,
)


def call(request_id: Any, text: str = "x") -> dict[str, Any]:
    return request(request_id, "tools/call", {"name": "t", "arguments": {"text": text}})


def test_discovery_then_handshake_on_one_pipe(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        found = front.ask(modern(1, "server/discover"))["result"]
        assert found["supportedVersions"][0] == "2026-07-28"
        shaken = front.ask(initialize(2, "2025-06-18"))["result"]
        assert shaken["protocolVersion"] == "2025-06-18"
        front.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert front.ask(request(3, "ping")) == {"jsonrpc": "2.0", "id": 3, "result": {}}


def test_eras_interleave(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.send(
            initialize("a"),
            modern("b", "tools/list"),
            request("c", "tools/list"),
            modern("d", "ping"),
            request("e", "ping"),
            modern("f", "server/discover"),
        )
        answers = {answer["id"]: answer for answer in (front.receive() for _ in range(6))}
    assert answers["b"]["result"]["resultType"] == "complete"
    assert "resultType" not in answers["c"]["result"]
    assert answers["d"]["error"]["code"] == -32601
    assert answers["e"]["result"] == {}
    assert "supportedVersions" in answers["f"]["result"]


def test_local_answers_start_nothing(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.ask(initialize(1))
        front.ask(request(2, "tools/list"))
        front.ask(modern(3, "server/discover"))
        front.ask(modern(4, "resources/list"))
        front.close_input()
        assert front.wait() == 0
        assert front.complaints() == ""
    assert not home.path.exists()


def test_resources_are_those_of_the_caller_s_project(
    home: Home, manifest: Path, tmp_path: Path
) -> None:
    environment = {"CLAUDE_PROJECT_DIR": str(tmp_path)}
    with FrontProcess(home, manifest, environment=environment) as front:
        workspaces = {"x-codex-turn-metadata": {"workspaces": ["/"]}}
        for message, folder in (
            (request(1, "resources/list"), str(tmp_path)),
            (modern(2, "resources/list"), str(tmp_path)),
            (request(3, "resources/list", {"_meta": workspaces}), "/"),
        ):
            (listed,) = front.ask(message)["result"]["resources"]
            project = project_of({}, folder, {}).project_id
            assert listed["uri"] == f"sakur4://receipt/{project}"
            assert "uriTemplate" not in listed
    assert not home.path.exists()


def test_the_worker_says_why_resources_cannot_be_listed(home: Home, manifest: Path) -> None:
    environment = {"MUNIMENT_PROJECT_ROOT": "/nowhere/at/all"}
    with (
        WorkerSocket(home) as worker,
        FrontProcess(home, manifest, environment=environment) as front,
    ):
        front.send(request(1, "resources/list"))
        peer, _ = worker.accept()
        assert peer.receive()["message"]["method"] == "resources/list"


def test_bare_requests_before_any_handshake_are_answered(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front, WorkerSocket(home) as worker:
        assert front.ask(request(1, "ping"))["result"] == {}
        assert front.ask(request(2, "tools/list"))["result"]["tools"][0]["title"]
        front.send(call(3))
        peer, hello = worker.accept()
        assert hello["client"] is None
        frame = peer.receive()
        assert (frame["era"], frame["client"]) == ("2025-11-25", None)
        peer.reply(frame, {"content": []})
        assert front.receive() == {"jsonrpc": "2.0", "id": 3, "result": {"content": []}}


def test_relayed_frames_carry_era_client_and_the_message_as_it_came(
    home: Home, manifest: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "проект 記憶 é"
    folder.mkdir()
    environment = {"CLAUDE_PROJECT_DIR": str(folder), "MUNIMENT_SESSION": "s-1"}
    with (
        WorkerSocket(home) as worker,
        FrontProcess(
            home, manifest, "--names", "safe", environment=environment, cwd=folder
        ) as front,
    ):
        front.ask(initialize(0, "2025-03-26"))
        odd = b'{ "jsonrpc":"2.0","id":"\xe8\xa8\x98","method":"tools/call","params":{"n":1.50}}'
        front.send_bytes(odd + b"\r\n")
        front.send(modern(8, "tools/call", name="t"))
        peer, hello = worker.accept()
        assert hello["protocol"] == 1
        assert len(bytes.fromhex(hello["connection"])) == 16
        assert hello["version"] == "9.8.7"
        assert hello["cwd"] == str(folder)
        assert (hello["profile"], hello["names"]) == ("context", "safe")
        assert environment.items() <= hello["environment"].items()
        assert hello["environment"].keys() <= {
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_PROJECT_DIR",
            "MUNIMENT_PROJECT_ROOT",
            "MUNIMENT_SESSION",
            "SAKUR4_PROJECT_ROOT",
            "SAKUR4_SESSION",
        }
        assert hello["client"]["name"] in ("legacy-client", "modern-client")
        line = peer.receive_line()
        assert line.startswith(b'{"n":1,"era":"2025-03-26","client":{"name":"legacy-client"')
        assert line.endswith(odd + b"}")
        second = peer.receive()
        assert (second["n"], second["era"]) == (2, "2026-07-28")
        assert second["client"] == {"name": "modern-client", "version": "2"}


def test_notifications_pass_and_unknown_answers_do_not(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(call(1))
        peer, _ = worker.accept()
        frame = peer.receive()
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"p": 1}}
        peer.send({"n": 99, "reply": {"jsonrpc": "2.0", "id": 99, "result": {}}})
        peer.send({"n": 1, "notify": progress})
        peer.reply(frame, {"content": [], "text": "記"})
        peer.send({"n": 1, "notify": progress})
        peer.reply(frame, {"content": ["again"]})
        assert front.receive() == progress
        assert front.receive()["result"]["text"] == "記"
        assert front.ask(request(2, "ping"))["id"] == 2


def test_cancel_is_relayed_and_the_answer_dropped(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(call(5), call(6))
        peer, _ = worker.accept()
        first, second = peer.receive(), peer.receive()
        for request_id in (5, "never", 5):
            params = {"requestId": request_id, "reason": "changed my mind"}
            front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert peer.receive() == {"cancel": first["n"], "reason": "changed my mind"}
        peer.reply(first, {"late": True})
        front.send(call(5, "the id is free again"))
        third = peer.receive()
        assert third["n"] == 3
        peer.reply(third, {"new": True})
        assert front.receive()["result"] == {"new": True}
        peer.reply(second, {"second": True})
        assert front.receive()["result"] == {"second": True}


def test_duplicate_id_in_flight_is_refused(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(call(1), call(1), request(1, "ping"), call("1"))
        for _ in range(2):
            refused = front.receive()
            assert refused["id"] == 1
            assert refused["error"]["code"] == -32600
            assert "id 1" in refused["error"]["message"]
        peer, _ = worker.accept()
        first, other = peer.receive(), peer.receive()
        assert other["message"]["id"] == "1"
        peer.reply(first, {})
        assert front.receive()["id"] == 1
        front.send(call(1))
        assert peer.receive()["message"]["id"] == 1


ID_LAST = b'{"method":"tools/call","params":{"a":' + b"[" * 30_000


GARBAGE: list[tuple[bytes, int, Any]] = [
    (b"{not json}", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"pi', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xed\xa0\x80"}}', -32700, None),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    (b'"ping"', -32600, None),
    (b"null", -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
    (b'{"id":4,"method":"ping"}', -32600, 4),
    (b'{"jsonrpc":"1.0","id":"x","method":"ping"}', -32600, "x"),
    (b'{"jsonrpc":"2.0","id":4,"method":7}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}', -32602, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":1}}', -32602, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"a":"\\ud800"}}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"\\uDFFF":1}}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"t","params":{"a":[{"b":"\\udc00"}]}}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\\ud800"}}', -32600, None),
    (b'{"jsonrpc":"2.0","id":4,"method":"t","params":{"a":' + b"[" * 100_000, -32600, None),
    (ID_LAST + b"]" * 30_000 + b'},"jsonrpc":"2.0","id":"z"}', -32600, "z"),
    (
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"a":'
        + b"[" * DEPTH_LIMIT
        + b"]" * DEPTH_LIMIT
        + b"}}",
        -32600,
        4,
    ),
    (b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', -32601, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"logging/setLevel"}', -32601, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen"}', -32601, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"server/discover"}', -32602, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"initialize"}', -32602, 4),
    (b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":"x"}}', -32602, 4),
]


def test_garbage_is_answered_and_relayed_never(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        for line, code, request_id in GARBAGE:
            front.send_bytes(line + b"\n")
            answer = front.receive()
            assert (answer["error"]["code"], answer["id"]) == (code, request_id), line[:100]
            assert front.ask(request("after", "ping"))["id"] == "after"
    assert not home.path.exists()


def test_tolerated_forms(home: Home, manifest: Path) -> None:
    ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    with FrontProcess(home, manifest) as front:
        front.send_bytes(b"\xef\xbb\xbf" + ping % 1 + b"\r\n")
        front.send_bytes(b"\n  \r\n\t\n" + ping % 2 + b"\n")
        front.send_bytes(b'{"jsonrpc":"2.0","id":9,"result":{"a":"\\ud800"}}\n')
        front.send_bytes(b'{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}\n')
        front.send_bytes(b'{"jsonrpc":"2.0","method":"notifications/unheard/of"}\n')
        front.send_bytes(b'{"jsonrpc":"2.0","id":3,"method":"ping","params":null}\n')
        front.send_bytes(ping % 4)
        front.close_input()
        assert [answer["id"] for answer in front.channel.rest()] == [1, 2, 3, 4]
        assert front.wait() == 0


def test_pairs_of_surrogate_escapes_are_characters(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        text = b'"\\ud83d\\ude00 \\u00e9 \\\\ud800"'
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":%b}}' % text
        front.send_bytes(line + b"\n")
        peer, _ = worker.accept()
        assert peer.receive()["message"]["params"]["a"] == "\U0001f600 é \\ud800"


@pytest.mark.parametrize("id_first", [True, False])
def test_a_line_over_the_limit_is_answered(home: Home, manifest: Path, id_first: bool) -> None:
    text = b'line\\n\\"' * (LINE_LIMIT_BYTES // 8 + 1)
    params = b'"params":{"id":666,"text":"' + text + b'"}'
    start = b'{"jsonrpc":"2.0","method":"tools/call",'
    middle = b'"id":5,' + params if id_first else params + b',"id":5'
    with FrontProcess(home, manifest) as front:
        front.send_bytes(start + middle + b"}\n")
        answer = front.receive()
        assert (answer["error"]["code"], answer["id"]) == (-32600, 5)
        assert str(LINE_LIMIT_BYTES) in answer["error"]["message"]
        assert front.ask(request(6, "ping"))["id"] == 6


def test_the_largest_episode_passes_both_ways(home: Home, manifest: Path) -> None:
    text = "0123456789abcde\n" * (1024 * 1024)
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(call(1, text))
        peer, _ = worker.accept()
        frame = peer.receive()
        assert frame["message"]["params"]["arguments"]["text"] == text
        peer.reply(frame, {"text": text})
        assert front.receive()["result"]["text"] == text


def test_any_locale_carries_any_text(home: Home, manifest: Path) -> None:
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    with (
        WorkerSocket(home) as worker,
        FrontProcess(home, manifest, environment=environment) as front,
    ):
        listed = front.ask(request(0, "tools/list"))["result"]["tools"]
        assert "記憶" in listed[0]["description"]
        front.send(call("記", "東京 🗼 é"))
        peer, _ = worker.accept()
        frame = peer.receive()
        assert frame["message"]["params"]["arguments"]["text"] == "東京 🗼 é"
        peer.reply(frame, {"text": "大阪 🏯"})
        assert front.receive() == {"jsonrpc": "2.0", "id": "記", "result": {"text": "大阪 🏯"}}


def test_a_folder_that_is_no_utf8_keeps_its_bytes(home: Home, manifest: Path) -> None:
    folder = home.path / os.fsdecode(b"caf\xe9")
    folder.mkdir(parents=True)
    with WorkerSocket(home) as worker, FrontProcess(home, manifest, cwd=folder) as front:
        front.send(call(1))
        _, hello = worker.accept()
        assert os.fsencode(hello["cwd"]) == os.fsencode(folder)


def test_lists_are_the_same_to_the_byte(home: Home, manifest: Path) -> None:
    lines: set[bytes] = set()
    for _ in range(2):
        with FrontProcess(home, manifest) as front:
            for message in (initialize(0), modern(1, "tools/list"), modern(1, "tools/list")):
                front.send(message)
                lines.add(front.channel.receive_line())
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), ["memory.recall", "sakur4.status"]),
        (("--names=safe",), ["memory_recall", "sakur4_status"]),
        (("--profile", "core"), ["memory_recall"]),
        (("--profile", "vault"), ["state_set", "state_get"]),
        (("--profile=all",), ["memory_recall", "sakur4_status", "state_get"]),
    ],
)
def test_profiles(home: Home, manifest: Path, arguments: tuple[str, ...], names: list[str]) -> None:
    with FrontProcess(home, manifest, *arguments) as front:
        listed = front.ask(request(1, "tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == names


def test_a_bad_environment_is_a_warning_and_a_default(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest, environment={"MUNIMENT_PROFILE": "volt"}) as front:
        listed = front.ask(request(1, "tools/list"))["result"]["tools"]
        assert listed[0]["name"] == "memory.recall"
        front.close_input()
        complaints = front.complaints().splitlines()
    assert len(complaints) == 1
    assert "MUNIMENT_PROFILE=volt" in complaints[0]


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (("--profile", "volt"), "context, vault, core or all"),
        (("--profile", "core", "--names", "reference"), "--profile context"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_bad_arguments_end_it_with_one_line(
    home: Home, manifest: Path, arguments: tuple[str, ...], mentions: str
) -> None:
    with FrontProcess(home, manifest, *arguments) as front:
        assert front.wait() == 2
        complaints = front.complaints().splitlines()
        assert front.channel.rest() == []
    assert len(complaints) == 1
    assert mentions in complaints[0]


def test_a_home_given_as_argument_is_the_one_used(
    home: Home, manifest: Path, tmp_path: Path
) -> None:
    elsewhere = Home(tmp_path / "elsewhere")
    with (
        WorkerSocket(home) as worker,
        FrontProcess(elsewhere, manifest, "--home", str(home.path)) as front,
    ):
        front.send(call(1))
        worker.accept()


def test_it_runs_as_a_module_and_says_how(home: Home, manifest: Path) -> None:
    command = (sys.executable, "-m", "muniment.bridge.front")
    with FrontProcess(home, manifest, "--help", command=command) as front:
        assert b"--profile" in front.stdout.read()
        assert front.wait() == 0
    with FrontProcess(home, manifest, "--version") as front:
        assert front.stdout.read() == b"muniment 9.8.7\n"
        assert front.wait() == 0


def test_importing_it_loads_nothing_that_is_slow() -> None:
    code = "import sys; before = set(sys.modules); import muniment.bridge.front; "
    code += "print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "logging", "pathlib", "socket"}
    slow |= {"subprocess", "typing", "uuid"}
    assert not slow & set(loaded)
    names = {name.partition(".")[0] for name in loaded}
    assert names <= sys.stdlib_module_names | {"muniment"}
    assert not [name for name in loaded if name.startswith(("muniment.kit", "muniment.v1"))]


def test_a_damaged_installation_is_said(home: Home, tmp_path: Path) -> None:
    with FrontProcess(home, tmp_path / "missing.json") as front:
        assert front.ask(request(1, "ping"))["result"] == {}
        answer = front.ask(modern(2, "server/discover"))
        assert answer["error"]["code"] == -32603
        assert "missing.json" in answer["error"]["message"]
        assert front.ask(request(3, "tools/call"))["error"]["code"] == -32603
        front.close_input()
        assert "damaged" in front.complaints()


def test_wrong_envelopes(home: Home, manifest: Path) -> None:
    version, capabilities = list(MODERN_META)[:2]
    with FrontProcess(home, manifest) as front:
        wrong = front.ask(
            request(1, "tools/list", {"_meta": {version: "2027-01-01", capabilities: {}}})
        )
        assert wrong["error"]["code"] == -32022
        assert wrong["error"]["data"]["requested"] == "2027-01-01"
        assert "2026-07-28" in wrong["error"]["data"]["supported"]
        missing = front.ask(request(2, "tools/call", {"_meta": {version: "2026-07-28"}}))
        assert missing["error"]["code"] == -32602
        assert capabilities in missing["error"]["message"]
