"""Complaints about memory servers that no other test holds; docs/complaints.md has them all."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.house import House
from tests.support.fronts import BridgeProcess

pytestmark = pytest.mark.timeout(240)

WARM_UP_CALLS = 400
CALLS = 1600
AT_ONCE = 40
GROWTH_LIMIT_KIB = 16 * 1024
"""Of each process. A leak of 10 KiB a call would pass it."""


@pytest.fixture
def bridge(common_house: House, tmp_path: Path) -> Iterator[BridgeProcess]:
    with BridgeProcess(common_house.home, tmp_path) as bridge:
        yield bridge


def resident_kib(pid: int) -> int:
    """The memory that a process has."""
    shown = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True, text=True
    )
    return int(shown.stdout)


def internet_sockets(pid: int) -> list[str]:
    """The sockets of a process that are not local to the machine's own files."""
    tables = [Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6", "raw")]
    if not Path("/proc/net/tcp").exists():
        command = ["lsof", "-nP", "-a", "-i", "-p", str(pid)]
        return subprocess.run(
            command, capture_output=True, check=False, text=True
        ).stdout.splitlines()
    inodes = {
        line.split()[9]: line
        for table in tables
        if table.exists()
        for line in table.read_text().splitlines()[1:]
    }
    opened = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # It was closed meanwhile.
            opened.append(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
    return [inodes[name] for name in opened if name in inodes]


def ask_for_much(bridge: BridgeProcess, calls: int) -> None:
    for _ in range(calls // AT_ONCE):
        asked = [
            bridge.send_call("memory.recall", query="the port of the service")
            if number % 2
            else bridge.send_call("sakur4.status")
            for number in range(AT_ONCE)
        ]
        for one in asked:
            bridge.content(one)


def test_memory_does_not_grow_with_calls(common_house: House, bridge: BridgeProcess) -> None:
    bridge.call("memory.commit_episode", role="user", content="the port of the service is 8080")
    services = [common_house.service(name)["pid"] for name in ("worker", "memory")]
    pids = [bridge.process.pid, *services]
    ask_for_much(bridge, WARM_UP_CALLS)
    before = [resident_kib(pid) for pid in pids]
    ask_for_much(bridge, CALLS)
    grown = [resident_kib(pid) - size for pid, size in zip(pids, before, strict=True)]
    assert max(grown) < GROWTH_LIMIT_KIB, grown


def test_nothing_of_a_house_is_on_the_network(common_house: House, bridge: BridgeProcess) -> None:
    bridge.call("memory.commit_episode", role="user", content="said at home")
    bridge.call("memory.pin", content="stay at home")
    bridge.call("memory.recall", query="home")
    with socket.create_server(("127.0.0.1", 0)):
        assert len(internet_sockets(os.getpid())) == 1
    for pid in (bridge.process.pid, *common_house.pids()):
        assert internet_sockets(pid) == []


def test_a_broken_project_hurts_no_other(
    common_house: House, bridge: BridgeProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    (folder / ".muniment.toml").write_text("project = ")
    with BridgeProcess(common_house.home, folder) as broken:
        refused = broken.result(
            broken.send_call("memory.commit_episode", role="user", content="lost")
        )
        assert refused["isError"] is True
        assert ".muniment.toml" in refused["content"][0]["text"]
        assert bridge.call("memory.commit_episode", role="user", content="kept")["seq"] > 0
        assert len(bridge.call("memory.recall", query="kept")["results"]) == 1
