"""A sealed home: nothing that was said is on the disk, not even when everything is killed."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.house import House, a_house, is_running
from tests.support.fronts import BridgeProcess
from tests.support.planting import Garden, traces
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

_LARGE_CHARACTERS = 1_200_000


@dataclass(frozen=True)
class Grounds:
    """A house, the texts that are planted in it, and where they may never be found."""

    house: House
    garden: Garden
    armoury: Path
    temporary: Path

    @property
    def place(self) -> Path:
        """The folder with the home, the keys and the project."""
        return self.house.home.path.parent

    def found(self) -> list[str]:
        """Where something that was planted, or the key, is on the disk."""
        folders = [
            self.house.home.path,
            self.house.home.runtime,
            self.house.key_folder,
            self.temporary,
        ]
        planted = traces(folders, self.garden.planted.values())
        return planted + [
            f"the key is in {path}"
            for folder in (self.house.home.path, self.house.home.runtime, self.temporary)
            for path in folder.rglob("*")
            if path.is_file() and any(one in path.read_bytes() for one in self.key_forms())
        ]

    def key_forms(self) -> list[bytes]:
        """The keys as they may stand in a file."""
        texts = [json.loads(path.read_text())["key"] for path in self.house.key_folder.iterdir()]
        keys = [b64decode(text) for text in texts]
        return [
            form for key in keys for form in (key, key.hex().encode(), b64encode(key).rstrip(b"="))
        ]

    def pid(self, service: str) -> int:
        """The service's process."""
        pid: int = until(lambda: self.house.service(service)["pid"], f"{service} runs", seconds=60)
        return pid


@pytest.fixture
def grounds(tmp_path: Path) -> Iterator[Grounds]:
    garden = Garden()
    armoury, temporary = tmp_path / "faults", tmp_path / "temporary"
    armoury.mkdir()
    temporary.mkdir()
    with a_house(
        MUNIMENT_FAULTS=str(armoury), MUNIMENT_LOG_LEVEL="debug", TMPDIR=str(temporary)
    ) as house:
        yield Grounds(house, garden, armoury, temporary)


@contextmanager
def a_harness(grounds: Grounds, project: Path, **more: str) -> Iterator[BridgeProcess]:
    """A harness in the project, that tells all of itself that harnesses tell."""
    garden, house = grounds.garden, grounds.house
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(project),
        "MUNIMENT_KEY_FOLDER": str(house.key_folder),
        "MUNIMENT_LOG_LEVEL": "debug",
        "MUNIMENT_FAULTS": str(grounds.armoury),
        "TMPDIR": str(grounds.temporary),
        **more,
    }
    name = garden.planted.get("client") or garden.plant("client")
    with BridgeProcess(house.home, project, environment=environment, name=name) as bridge:
        yield bridge


def a_project(grounds: Grounds) -> Path:
    """A project whose folder, name and files are planted."""
    plant = grounds.garden.plant
    project = grounds.place / plant("project folder")
    (project / "src").mkdir(parents=True)
    (project / "src" / f"{plant('file')}.py").write_text("x = 1\n")
    (project / ".muniment.toml").write_text(f'project = "{plant("project name")}"\n')
    return project


def speak(grounds: Grounds, bridge: BridgeProcess) -> None:
    """A session with everything in it that an agent may say."""
    garden = grounds.garden
    plant, planted = garden.plant, garden.planted

    def commit(what: str, text: str = "", **more: Any) -> dict[str, Any]:
        content = f"{text} It is {plant(what)}, réally ✓ {planted['file']}."
        return bridge.call("memory.commit_episode", role="user", content=content, **more)

    first = commit("content")
    commit("tool result", role_of_tool(planted["file"]), tool_name=plant("tool name"))
    commit("content of a session", session_id=plant("session"))
    commit("correction", corrects=first["episode_id"])
    commit("large content", "many words " * (_LARGE_CHARACTERS // 11))
    bridge.call("memory.pin", content=f"Never say {plant('pin')}")
    bridge.call(
        "memory.pin", content=f"Nor {plant('pin of a session')}", session_id=planted["session"]
    )
    bridge.call("memory.recall", query=f"where is {plant('query')} or {planted['content']}?")
    bridge.call("memory.recall", query=planted["pin"], file_path=f"src/{planted['file']}.py")
    bridge.text(bridge.send("resources/read", {"uri": anchors_of(bridge)}))


def role_of_tool(name: str) -> str:
    return f"--- a/src/{name}.py\n+++ b/src/{name}.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def anchors_of(bridge: BridgeProcess) -> str:
    (uri,) = (
        one["uri"]
        for one in bridge.result(bridge.send("resources/list"))["resources"]
        if "anchors" in one["uri"]
    )
    return str(uri)


def speak_badly(grounds: Grounds, bridge: BridgeProcess) -> None:
    """Requests that fail in every way, each with something planted in it."""
    plant = grounds.garden.plant
    meta = {"_meta": {"claudecode/toolUseId": plant("call id"), "sessionId": plant("meta session")}}
    bad: list[tuple[str, Mapping[str, Any]]] = [
        ("tools/call", {"name": plant("unknown tool"), "arguments": {}}),
        ("tools/call", {"name": "memory.pin", "arguments": {plant("unknown argument"): 1}}),
        ("tools/call", {"name": "memory.pin", "arguments": {"content": [plant("list")]}}),
        ("tools/call", {"name": "memory.pin", "arguments": plant("no arguments")}),
        ("tools/call", commit_of(corrects=plant("unknown episode"))),
        ("tools/call", commit_of(session_id=plant("long session") * 20)),
        ("tools/call", commit_of(session_id=plant("session of lines") + "\n")),
        ("tools/call", commit_of(role=plant("unknown role"))),
        ("tools/call", recall_of(file_path=f"../{plant('path outside')}")),
        ("tools/call", recall_of(project_id=plant("unknown project"))),
        ("tools/call", recall_of(query=plant("long query") * 6000)),
        ("resources/read", {"uri": f"sakur4://anchors/{plant('project of a resource')}"}),
        ("resources/read", {"uri": f"{plant('scheme')}://x"}),
        ("prompts/get", {"name": plant("unknown prompt"), "arguments": {plant("prompt"): "x"}}),
        ("tools/list", {"cursor": plant("cursor")}),
        (plant("unknown method"), {"x": plant("parameter")}),
    ]
    numbers = [bridge.send(method, params) for method, params in bad]
    number = bridge.send("tools/call", {**commit_of(content=plant("content with meta")), **meta})
    numbers += [number, bridge.send("tools/call", commit_of(content=plant("cancelled")))]
    bridge.write(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": numbers.pop(), "reason": plant("reason")},
        }
    )
    assert bridge.process.stdin is not None
    bridge.process.stdin.write(f'{{"no json": {plant("no json")}\n'.encode())
    bridge.process.stdin.flush()
    for number in numbers:
        bridge.answer(number)


def commit_of(**arguments: Any) -> dict[str, Any]:
    told = {"role": "user", "content": "plain words"} | arguments
    return {"name": "memory.commit_episode", "arguments": told}


def recall_of(**arguments: Any) -> dict[str, Any]:
    return {"name": "memory.recall", "arguments": {"query": "plain words"} | arguments}


def kill_while(
    grounds: Grounds, service: str, send: Callable[[], int], point: str | None = None
) -> tuple[int, list[str]]:
    """The request that was sent, and what is on the disk when the service was killed on it.

    Its supervisor stands still meanwhile, so that nothing cleans up before the search.
    """
    supervisor, pid = grounds.house.supervisor_pid(), grounds.pid(service)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        if point is not None:
            (grounds.armoury / point).write_text("1")
        number = send()
        if point is None:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not is_running(pid), f"{service} is killed at {point}")
        return number, grounds.found()
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_nothing_that_was_said_is_on_the_disk(grounds: Grounds) -> None:
    house, garden = grounds.house, grounds.garden
    project = a_project(grounds)
    house.must("key", "create")
    session = {
        "MUNIMENT_SESSION": garden.plant("session of the environment"),
        "CLAUDE_PROJECT_DIR": str(project),
    }
    with a_harness(grounds, project, **session) as bridge:
        bridge.initialize()
        speak(grounds, bridge)
        assert grounds.found() == []
        speak_badly(grounds, bridge)
        assert grounds.found() == []

        for point in ("store.before_commit", "store.after_commit", "memory.before_reply"):
            commit = commit_of(content=f"said when killed: {garden.plant(point)}")
            send = partial(bridge.send, "tools/call", commit)
            number, found = kill_while(grounds, "memory", send, point)
            assert found == []
            bridge.content(number)
        query = f"{garden.plant('to a dying worker')} {garden.planted['pin']}"
        send = partial(bridge.send, "tools/call", recall_of(query=query))
        number, found = kill_while(grounds, "worker", send)
        assert found == []
        assert bridge.content(number)["results"]
        bridge.close_input()
    assert house.must("verify-store")["findings"] == []
    assert grounds.found() == []
    house.must("backup", str(house.home.path / "copy"))
    house.must("key", "rotate")
    house.must("restore", str(house.home.path / "copy"))
    house.must("down")
    assert grounds.found() == []
    assert_all_is_remembered(grounds, project)


def assert_all_is_remembered(grounds: Grounds, project: Path) -> None:
    """It was planted: the memory gives it back."""
    house, planted = grounds.house, grounds.garden.planted
    for what in ("content", "tool result", "large content", "pin", "store.before_commit"):
        results = house.recall(planted[what], "--project", str(project))
        assert results, what
        assert planted[what] in results[0]["text"]
    assert house.must("projects")[0]["roots"] == [str(project)]


def test_what_was_plain_is_sealed_without_a_trace(grounds: Grounds) -> None:
    house = grounds.house
    project = a_project(grounds)
    house.must("up")
    with a_harness(grounds, project) as bridge:
        bridge.initialize()
        speak(grounds, bridge)
        speak_badly(grounds, bridge)
        bridge.close_input()
    log = house.home.logs / "memory.log"
    log.write_text(f"{log.read_text()}{grounds.garden.plant('log')}\n")
    plain = grounds.found()
    for what in ("content", "pin", "large content", "session", "log"):
        # The search finds what is there to be found.
        assert any(grounds.garden.planted[what] in one for one in plain)
    house.must("key", "create")
    assert grounds.found() == []
    house.must("down")
    assert grounds.found() == []


def test_a_failure_of_the_house_itself_quotes_nothing(grounds: Grounds) -> None:
    house = grounds.house
    project = a_project(grounds)
    house.must("key", "create")
    house.must("up")
    with a_harness(grounds, project) as bridge:
        bridge.initialize()
        speak(grounds, bridge)
        bridge.close_input()
    house.must("down")
    data = house.home.data("memory") / "store" / "data.mdb"
    with data.open("rb+") as file:
        # No store any more; what stood in it is still there, and the failure is told and logged.
        file.write(b"x" * 8192)
    assert house.run("up").code == 1
    assert "STORE_UNREADABLE" in (house.home.logs / "memory.log").read_text()
    assert grounds.found() == []
