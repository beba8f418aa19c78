"""Logs are JSON in files and readable on a terminal; what is secret is left out."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from muniment.kit.logging import without_secrets
from muniment.v1 import common_pb2, memory_pb2
from tests.support.homes import clean_environment
from tests.support.messages import vault_message

SPEAKS = """\
import logging
import sys
import structlog
from muniment.kit.logging import configure_logging

configure_logging("memory", sys.argv[1])
log = structlog.get_logger()
log.debug("quiet")
log.info("serving", socket="/run/memory.sock", text="é\\n")
with structlog.contextvars.bound_contextvars(project="proj_1"):
    log.warning("bound")
log.info("unbound")
logging.getLogger("grpc").warning("from %s", "elsewhere")
logging.getLogger("grpc").debug("chatter")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
"""


def speak(level: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", SPEAKS, level],
        env=clean_environment(),
        check=True,
        timeout=30,
        **options,
    )


def test_every_line_is_an_object_that_names_service_time_and_level() -> None:
    ran = speak("info", capture_output=True)
    assert ran.stdout == b""
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [line["event"] for line in lines] == [
        "serving",
        "bound",
        "unbound",
        "from elsewhere",
        "failed",
    ]
    assert {line["service"] for line in lines} == {"memory"}
    assert [line["level"] for line in lines] == ["info", "warning", "info", "warning", "error"]
    assert all(line["timestamp"].endswith("Z") for line in lines)
    assert lines[0]["text"] == "é\n"
    assert [line.get("project") for line in lines] == [None, "proj_1", None, None, None]
    assert "ZeroDivisionError" in lines[-1]["exception"]


def test_the_level_holds_for_libraries_too() -> None:
    assert len(speak("debug", capture_output=True).stderr.splitlines()) == 7


def test_a_terminal_gets_lines_for_people() -> None:
    ours, theirs = pty.openpty()
    try:
        speak("warning", stderr=theirs)
        os.close(theirs)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
    assert "bound" in shown
    assert not shown.startswith("{")


VAULT: Any = vault_message()


def filled(depth: int) -> Any:
    message = VAULT(title="title", password="hunter2", codes=["hunter2"], tags=["tag"])
    if depth:
        message.inside.CopyFrom(filled(depth - 1))
        message.list.append(filled(depth - 1))
        message.list.append(filled(0))
        message.named["a"].CopyFrom(filled(depth - 1))
        message.safe.CopyFrom(filled(depth - 1))
    return message


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_secrets_are_cleared_at_any_depth(depth: int) -> None:
    message = filled(depth)
    before = message.SerializeToString(deterministic=True)
    cleared: Any = without_secrets(message)
    assert b"hunter2" not in cleared.SerializeToString()
    assert cleared.title == "title"
    assert list(cleared.tags) == ["tag"]
    if depth:
        assert cleared.inside.title == cleared.named["a"].title == "title"
        assert [one.title for one in cleared.list] == ["title"] * 2
        assert not cleared.HasField("safe")
    assert message.SerializeToString(deterministic=True) == before


def test_messages_without_secrets_stay_as_they_are() -> None:
    response = common_pb2.DescribeResponse(
        service="memory", contracts=["muniment.v1"], limits={"a": 1}
    )
    response.settings.add(name="log_level", value="info")
    assert without_secrets(response) == response
    assert without_secrets(memory_pb2.PinRequest()) == memory_pb2.PinRequest()
