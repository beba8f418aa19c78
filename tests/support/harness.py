"""A harness that always has commits under way, as a program of its own that can be killed.

`python harness.py PREFIX ALONE|SIBLING COMMAND...` spawns the front and tells on standard output,
a JSON object a line: its process and that of the sibling, then every answer that it has read. A
line on its standard input makes it deaf: it closes the front's output, and stays.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress

UNDER_WAY = 8
"""Commits that wait for their answers at any time."""

SIBLING = "SIBLING"
"""It is to have a child that has both ends of the front's pipes, and outlives it."""

_MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def main(prefix: str, company: str, *command: str) -> None:
    """Run until the front has ended, or for ever."""
    front = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert front.stdin is not None
    assert front.stdout is not None
    writing, reading = front.stdin.fileno(), front.stdout.fileno()
    _tell({"front": front.pid})
    if company == SIBLING:
        sibling = subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.pause()"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(writing, reading),
        )
        _tell({"sibling": sibling.pid})
    for number in range(UNDER_WAY):
        _commit(writing, f"{prefix} {number}")
    _converse(prefix, writing, reading)
    os.close(reading)
    front.wait()


def _converse(prefix: str, writing: int, reading: int) -> None:
    """Tell each answer and send the next commit, until there is no more, or until made deaf."""
    sent, rest = UNDER_WAY, b""
    while True:
        ready, _, _ = select.select([reading, 0], [], [])
        if 0 in ready:
            return
        chunk = os.read(reading, 65536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            _tell({"answer": json.loads(line)})
            _commit(writing, f"{prefix} {sent}")
            sent += 1


def _commit(writing: int, content: str) -> None:
    arguments = {"role": "user", "content": content}
    params = {"name": "memory.commit_episode", "arguments": arguments, "_meta": _MODERN}
    message = {"jsonrpc": "2.0", "id": content, "method": "tools/call", "params": params}
    with suppress(BrokenPipeError):
        os.write(writing, json.dumps(message).encode() + b"\n")


def _tell(what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
