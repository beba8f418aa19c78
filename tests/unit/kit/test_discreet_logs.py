"""The logs of a sealed home tell what the house did, and nothing of what was said to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

SECRET = "planted words"

SPEAKS = f"""\
import asyncio
import logging
import sys
import threading
import warnings
import structlog
from muniment.kit.logging import configure_logging

configure_logging("memory", "debug", pseudonym=lambda text: f"~{{len(text)}}")
log = structlog.get_logger()
secret = "{SECRET}"

def fail(text):
    try:
        raise KeyError(text)
    except KeyError as error:
        raise ValueError(text) from error

what = sys.argv[1]
if what == "ours":
    log.info("serving", socket="/run/memory.sock", project=secret, session=secret, number=7)
    log.info("listed", names=[secret], nothing=None, empty="")
    with structlog.contextvars.bound_contextvars(root=secret):
        log.warning("bound", reason="STORE_FULL")
elif what == "exception":
    try:
        fail(secret)
    except ValueError:
        log.exception("call failed", method="/muniment.v1/Pin")
elif what == "library":
    logging.getLogger("mcp.server").warning(f"cannot validate {{secret}}")
    logging.getLogger("grpc").error("about %s", secret, stack_info=True)
    try:
        fail(secret)
    except ValueError:
        logging.getLogger("asyncio").exception(secret)
elif what == "task":
    async def main():
        async def one():
            fail(secret)
        task = asyncio.ensure_future(one())
        await asyncio.wait([task])
        del task
    asyncio.run(main())
elif what == "uncaught":
    fail(secret)
elif what == "thread":
    thread = threading.Thread(target=fail, args=(secret,), name=secret)
    thread.start()
    thread.join()
elif what == "finalizer":
    class Last:
        def __del__(self):
            fail(secret)
    Last()
elif what == "warning":
    warnings.simplefilter("always")
    warnings.warn(secret)
"""


def speak(what: str) -> tuple[list[dict[str, Any]], str]:
    ran = subprocess.run(
        [sys.executable, "-c", SPEAKS, what],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
        timeout=30,
        text=True,
    )
    assert ran.stdout == ""
    assert (ran.returncode == 0) == (what != "uncaught")
    return [json.loads(line) for line in ran.stderr.splitlines()], ran.stderr


def test_words_of_the_house_stay_and_others_become_pseudonyms() -> None:
    lines, _ = speak("ours")
    for line in lines:
        del line["timestamp"]
    assert lines == [
        {
            "event": "serving",
            "level": "info",
            "service": "memory",
            "socket": "/run/memory.sock",
            "project": "~13",
            "session": "~13",
            "number": 7,
        },
        {
            "event": "listed",
            "level": "info",
            "service": "memory",
            "names": "~17",
            "nothing": None,
            "empty": "",
        },
        {
            "event": "bound",
            "level": "warning",
            "service": "memory",
            "reason": "STORE_FULL",
            "root": "~13",
        },
    ]


@pytest.mark.parametrize(
    "what",
    ["ours", "exception", "library", "task", "uncaught", "thread", "finalizer", "warning"],
)
def test_nothing_that_was_said_is_written(what: str) -> None:
    lines, text = speak(what)
    assert lines
    assert "planted" not in text


@pytest.mark.parametrize("what", ["exception", "task", "uncaught", "thread", "finalizer"])
def test_an_error_is_told_by_its_kind_and_place(what: str) -> None:
    lines, _ = speak(what)
    (told,) = (line["exception"] for line in lines if "exception" in line)
    assert told.startswith("ValueError at ")
    assert "fail; after KeyError at <string>:" in told


def test_a_library_is_told_by_its_name_and_place() -> None:
    lines, _ = speak("library")
    places = [line["event"].rpartition(":")[0] for line in lines]
    assert places == ["mcp.server at <string>", "grpc at <string>", "asyncio at <string>"]
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
