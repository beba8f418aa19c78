"""Logs are readable lines for people, and one object a line for programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.kit.paths import Home
from tests.unit.cli.conftest import Runner

ENTRY = {
    "timestamp": "2026-01-02T03:04:05.678901Z",
    "level": "info",
    "event": "serving",
    "service": "memory",
    "socket": "/run/memory.sock",
}
FAILURE = {"event": "call failed", "level": "error", "exception": "Traceback:\n  line\x1b"}


@pytest.fixture
def log(home: Home) -> Path:
    home.logs.mkdir(parents=True)
    path = home.logs / "memory.log"
    path.write_text(f"{json.dumps(ENTRY)}\nnot \x07 JSON\n{json.dumps(FAILURE)}\n")
    return path


@pytest.mark.usefixtures("log")
def test_lines_are_readable(muniment: Runner) -> None:
    assert muniment("logs", "memory").out.splitlines() == [
        "2026-01-02T03:04:05.678901Z info     serving  socket=/run/memory.sock",
        "not \\x07 JSON",
        "- error    call failed",
        "Traceback:",
        "  line\\x1b",
    ]


@pytest.mark.usefixtures("log")
def test_lines_are_objects_where_asked_for(muniment: Runner) -> None:
    lines = muniment("logs", "memory", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == [ENTRY, {"event": "not \x07 JSON"}, FAILURE]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(("count", "found"), [("0", 0), ("1", 1), ("2", 2), ("9", 3)])
def test_the_newest_are_shown(muniment: Runner, count: str, found: int) -> None:
    lines = muniment("logs", "memory", "--json", "--lines", count).out.splitlines()
    assert len(lines) == found
    assert not lines or json.loads(lines[-1]) == FAILURE


def test_no_log_yet_is_no_error(muniment: Runner) -> None:
    ran = muniment("logs", "supervisord")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_only_logs_are_read(muniment: Runner) -> None:
    ran = muniment("logs", "../muniment")
    assert ran.code == 1
    assert "use one of memory, slots, worker, supervisord" in ran.err


def test_following_goes_on_into_the_next_file_until_interrupted(home: Home, log: Path) -> None:
    command = [sys.executable, "-m", "muniment.cli", "--home", str(home.path)]
    with subprocess.Popen(
        [*command, "logs", "memory", "--follow", "--lines", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == FAILURE
        with log.open("a") as file:
            file.write('{"event": "second"}\n{"event": "thi')
            file.flush()
            assert json.loads(process.stdout.readline()) == {"event": "second"}
            file.write('rd"}\n')
        assert json.loads(process.stdout.readline()) == {"event": "third"}
        log.rename(log.with_suffix(".log.1"))
        log.write_text('{"event": "fourth"}\n')
        assert json.loads(process.stdout.readline()) == {"event": "fourth"}
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""
