"""How a front ends: with its input, by a signal, with its reader, and with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muniment.bridge.front import DRAIN_SECONDS, PARENT_POLL_SECONDS
from muniment.kit.paths import Home
from tests.unit.bridge.wire import (
    LAUNCHER,
    Channel,
    FrontProcess,
    WorkerSocket,
    modern,
    request,
)

# Beyond what a front takes by its own constants: the machine may be busy.
SLACK_SECONDS = 2.0

CALL = {"name": "t", "arguments": {}}


def test_end_of_input_ends_it_at_once_when_nothing_waits(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.send(request(1, "ping"))
        front.close_input()
        assert [answer["id"] for answer in front.channel.rest()] == [1]
        assert front.complaints() == ""


def test_end_of_input_waits_for_what_is_under_way(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(request(1, "tools/call", CALL), request(2, "tools/call", CALL))
        peer, _ = worker.accept()
        frames = [peer.receive(), peer.receive()]
        front.close_input()
        for frame in frames:
            peer.reply(frame, {"done": True})
        assert [answer["result"] for answer in front.channel.rest()] == [{"done": True}] * 2
        assert front.wait() == 0


def test_what_is_not_answered_in_time_is_answered_with_an_error(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(
            request(1, "tools/call", CALL),
            request("two", "tools/call", CALL),
            modern(3, "subscriptions/listen", notifications={}),
        )
        peer, _ = worker.accept()
        for _ in range(3):
            peer.receive()
        began = time.monotonic()
        front.close_input()
        answers = front.channel.rest()
        assert front.wait() == 0
        took = time.monotonic() - began
    assert [answer["id"] for answer in answers] == [1, "two", 3]
    assert {answer["error"]["code"] for answer in answers} == {-32603}
    assert "may or may not be recorded" in answers[0]["error"]["message"]
    assert DRAIN_SECONDS * 0.9 < took < DRAIN_SECONDS + SLACK_SECONDS


def test_a_subscription_does_not_hold_up_the_end(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(modern(3, "subscriptions/listen", notifications={}))
        peer, _ = worker.accept()
        peer.receive()
        began = time.monotonic()
        front.close_input()
        assert [answer["id"] for answer in front.channel.rest()] == [3]
        assert front.wait() == 0
        assert time.monotonic() - began < DRAIN_SECONDS * 0.9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it(home: Home, manifest: Path, number: signal.Signals) -> None:
    with FrontProcess(home, manifest) as front:
        front.ask(request(1, "ping"))
        front.signal(number)
        assert front.wait() == 0
        assert front.complaints() == ""


def test_signals_come_together_and_answers_still_arrive(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(request(1, "tools/call", CALL), request(2, "tools/call", CALL))
        peer, _ = worker.accept()
        first, _ = peer.receive(), peer.receive()
        began = time.monotonic()
        front.signal(signal.SIGINT)
        front.signal(signal.SIGTERM)
        peer.reply(first, {"done": True})
        assert front.receive()["result"] == {"done": True}
        assert front.receive()["error"]["code"] == -32603
        assert front.wait() == 0
        assert time.monotonic() - began < 2.0 + SLACK_SECONDS


def test_a_signal_ends_it_while_nobody_reads_its_output(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.ask(request(0, "ping"))
        os.set_blocking(front.stdin.fileno(), False)
        ping = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 200
        try:
            while os.write(front.stdin.fileno(), ping) == len(ping):
                continue
        except BlockingIOError:
            pass  # Both pipes are full: the front stands in a write.
        front.signal(signal.SIGTERM)
        assert front.wait() == 0


def test_it_ends_when_its_output_is_closed(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.ask(request(1, "ping"))
        front.stdout.close()
        assert front.wait() == 0


def test_it_ends_with_its_parent_though_others_hold_the_pipe(home: Home, manifest: Path) -> None:
    between = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    command = (sys.executable, "-c", between, sys.executable, str(LAUNCHER))
    with FrontProcess(home, manifest, command=command) as parent:
        parent.ask(request(1, "ping"))
        parent.process.kill()
        parent.process.wait()
        killed = time.monotonic()
        # The test still holds the input open; the front alone holds the output.
        assert parent.channel.rest() == []
        assert time.monotonic() - killed < PARENT_POLL_SECONDS + SLACK_SECONDS


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stream_is_said(home: Home, manifest: Path, closed: str) -> None:
    command = ("/bin/sh", "-c", f'"$0" "$@" {closed}', sys.executable, str(LAUNCHER))
    with FrontProcess(home, manifest, command=command) as front:
        assert front.wait() == 1
        assert "must be open" in front.complaints()


def test_nothing_but_messages_reaches_the_wire() -> None:
    code = """
import os, subprocess, sys, warnings
from muniment.bridge.framing import take_standard_streams
reading, writing = take_standard_streams()
print("printed", flush=True)
subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
os.write(1, b"raw\\n")
warnings.warn("a warning")
os.write(writing, os.read(reading, 100))
assert not os.get_inheritable(reading) and not os.get_inheritable(writing)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"wire\n", capture_output=True, check=True
    )
    assert done.stdout == b"wire\n"
    for said in (b"printed", b"from a child", b"raw", b"a warning"):
        assert said in done.stderr


def test_a_closed_standard_error_swallows_what_is_printed() -> None:
    code = """
import os
from muniment.bridge.framing import complain, take_standard_streams
reading, writing = take_standard_streams()
print("printed", flush=True)
complain("nobody hears it")
os.write(writing, b"wire\\n")
"""
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b"wire\n"


def test_a_non_blocking_output_is_written_to_the_end(home: Home, manifest: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    environment = os.environ | {"MUNIMENT_HOME": str(home.path), "TEST_MANIFEST": str(manifest)}
    count = 200
    ping = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * count
    with subprocess.Popen(
        [sys.executable, str(LAUNCHER)], stdin=subprocess.PIPE, stdout=writing, env=environment
    ) as process:
        os.close(writing)
        assert process.stdin is not None
        process.stdin.write(ping)
        process.stdin.flush()
        channel = Channel(reading)
        assert len({channel.receive_line() for _ in range(count)}) == 1
        process.stdin.close()
        assert channel.rest() == []
    os.close(reading)
