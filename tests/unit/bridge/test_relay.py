"""The relay by itself: who waits for what, and what is said when waiting ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from muniment.bridge import relay as module
from muniment.bridge.dialling import Dialler
from muniment.bridge.framing import encode
from muniment.bridge.relay import RESEND_LIMIT, Relay
from muniment.kit.paths import Home
from tests.unit.bridge.wire import DEADLINE_SECONDS, Peer, WorkerSocket, request

MODERN = "2026-07-28"


class Harness:
    """A relay with a harness that is a queue."""

    def __init__(self) -> None:
        self.written: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.idle = threading.Event()
        self.starts = 0
        self.may_start = threading.Event()
        self.is_subscribed = False
        self.relay = Relay(
            dialler=Dialler(self._start, 0.3),
            greet=lambda: encode({"hello": {"protocol": 1}}),
            write=lambda message: self.written.put(json.loads(message)),
            on_idle=self.idle.set,
            is_subscribed=lambda: self.is_subscribed,
        )

    def _start(self, home: Home, deadline_seconds: float) -> bool:
        self.starts += 1
        self.may_start.wait(DEADLINE_SECONDS)
        return False

    def submit(self, request_id: Any, method: str = "tools/call", text: str = "") -> None:
        message = encode(request(request_id, method, {"text": text}))
        self.relay.submit(request_id, method, message, era=MODERN, client=None)

    def next(self) -> dict[str, Any]:
        return self.written.get(timeout=DEADLINE_SECONDS)


@pytest.fixture
def harness(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    monkeypatch.setenv("MUNIMENT_HOME", str(home.path))
    monkeypatch.setattr("muniment.bridge.relay._LONGEST_PAUSE_SECONDS", 0.01)
    made = Harness()
    yield made
    made.may_start.set()
    made.relay.close("the test ends")
    assert made.relay.join(DEADLINE_SECONDS)


def replying(peer: Peer, count: int) -> None:
    for _ in range(count):
        peer.reply(peer.receive(), {})


def test_nothing_runs_before_the_first_request(harness: Harness) -> None:
    assert harness.relay.is_idle()
    assert harness.relay.join(0)
    assert harness.starts == 0


def test_all_who_wait_share_one_attempt_and_its_end(harness: Harness) -> None:
    harness.submit(1)
    harness.submit("b")
    assert harness.relay.holds(1)
    assert harness.relay.holds("b")
    assert not harness.relay.holds("1")
    harness.may_start.set()
    answers = [harness.next(), harness.next()]
    assert harness.idle.wait(DEADLINE_SECONDS)
    assert [answer["id"] for answer in answers] == [1, "b"]
    for answer in answers:
        assert answer["error"]["code"] == -32603
        assert "within 0.3 s" in answer["error"]["message"]
        assert "It was not sent, so nothing was recorded" in answer["error"]["message"]
        assert "`muniment doctor`" in answer["error"]["message"]
    assert harness.starts == 1
    assert not harness.relay.holds(1)


def test_what_was_sent_and_lost_says_so(home: Home, harness: Harness) -> None:
    harness.may_start.set()
    with WorkerSocket(home) as worker:
        harness.submit(1)
        peer, _ = worker.accept()
        peer.receive()
    assert "may or may not be recorded" in harness.next()["error"]["message"]


def test_the_last_waiting_one_is_cancelled_during_a_start(harness: Harness) -> None:
    harness.submit(1)
    harness.relay.cancel(1, None)
    assert harness.idle.is_set()
    harness.may_start.set()
    harness.submit(2)
    assert harness.next()["id"] == 2


def test_an_id_is_free_when_its_answer_is_out(home: Home, harness: Harness) -> None:
    with WorkerSocket(home) as worker:
        harness.submit(7)
        peer, _ = worker.accept()
        for _ in range(20):
            peer.reply(peer.receive(), {})
            assert harness.next()["id"] == 7
            assert not harness.relay.holds(7)
            harness.submit(7)
        replying(peer, 1)
        assert harness.next()["id"] == 7


def test_a_request_that_breaks_every_worker_is_given_up(
    home: Home, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RESEND_LIMIT > 10
    monkeypatch.setattr(module, "RESEND_LIMIT", 3)
    with WorkerSocket(home) as worker:
        harness.submit(1)
        harness.submit(2, "subscriptions/listen")
        for _ in range(3):
            peer, _ = worker.accept()
            assert [peer.receive()["n"], peer.receive()["n"]] == [1, 2]
            peer.close()
        peer, _ = worker.accept()
        assert "broke 3 times" in harness.next()["error"]["message"]
        assert peer.receive()["n"] == 2


def test_subscriptions_alone_bring_no_services_back(home: Home, harness: Harness) -> None:
    with WorkerSocket(home) as worker:
        harness.submit(1, "subscriptions/listen")
        peer, _ = worker.accept()
        peer.receive()
        assert harness.relay.is_idle()
    assert harness.next()["id"] == 1
    assert harness.starts == 0


def test_a_call_brings_services_back_though_a_subscription_waits(
    home: Home, harness: Harness
) -> None:
    harness.may_start.set()
    with WorkerSocket(home) as worker:
        harness.submit(1, "subscriptions/listen")
        peer, _ = worker.accept()
        peer.receive()
    harness.submit(2)
    while harness.next()["id"] != 2:
        continue
    assert harness.starts == 1


def test_who_is_subscribed_is_reconnected_with_nothing_under_way(
    home: Home, harness: Harness
) -> None:
    harness.is_subscribed = True
    with WorkerSocket(home) as worker:
        harness.submit(1)
        for _ in range(3):
            peer, _ = worker.accept()
            if harness.relay.holds(1):
                replying(peer, 1)
                assert harness.next()["id"] == 1
            peer.close()
        peer, _ = worker.accept()
        assert harness.relay.is_idle()
        update = {"jsonrpc": "2.0", "method": "notifications/resources/updated"}
        peer.send({"n": None, "notify": update})
        assert harness.next() == update
    assert harness.starts == 0


def blocked(deed: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=deed, daemon=True)
    thread.start()
    return thread


def test_beyond_the_limit_submitting_waits(
    home: Home, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_LIMIT", 2)
    with WorkerSocket(home) as worker:
        harness.submit(1)
        harness.submit(2)
        third = blocked(lambda: harness.submit(3))
        peer, _ = worker.accept()
        first, _ = peer.receive(), peer.receive()
        assert third.is_alive()
        peer.reply(first, {})
        assert peer.receive()["message"]["id"] == 3
        third.join(DEADLINE_SECONDS)


def test_large_requests_fill_the_limit_too(
    home: Home, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_LIMIT_BYTES", 1000)
    harness.submit(1, text="x" * 1000)
    second = blocked(lambda: harness.submit(2))
    harness.relay.cancel(1, None)
    second.join(DEADLINE_SECONDS)
    assert harness.relay.holds(2)


def test_a_frame_without_end_breaks_the_connection(
    home: Home, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRAME_LIMIT_BYTES", 10_000)
    with WorkerSocket(home) as worker:
        harness.submit(1)
        peer, _ = worker.accept()
        peer.receive()
        peer.send({"n": 1, "reply": {"text": "x" * 20_000}})
        peer, _ = worker.accept()
        replying(peer, 1)
        assert harness.next()["result"] == {}


def test_an_answer_has_the_id_that_was_asked_for(home: Home, harness: Harness) -> None:
    with WorkerSocket(home) as worker:
        harness.submit("asked")
        peer, _ = worker.accept()
        peer.send({"n": 1, "reply": {"jsonrpc": "2.0", "id": None, "result": {}}})
        assert harness.next() == {"jsonrpc": "2.0", "id": "asked", "result": {}}


def test_closing_answers_who_waits_and_whoever_comes(harness: Harness) -> None:
    harness.submit(1)
    harness.relay.close("the bridge was told to end")
    assert "told to end" in harness.next()["error"]["message"]
    harness.submit(2)
    assert harness.next()["id"] == 2


def test_a_defect_is_an_answer(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_HOME", str(home.path))
    written: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def defective() -> bytes:
        raise KeyError("version")

    relay = Relay(
        dialler=Dialler(lambda *_: False, 0.3),
        greet=defective,
        write=lambda message: written.put(json.loads(message)),
        on_idle=lambda: None,
    )
    with WorkerSocket(home):
        relay.submit(1, "tools/call", encode(request(1, "tools/call")), era=MODERN, client=None)
        answer = written.get(timeout=DEADLINE_SECONDS)
        assert "KeyError" in answer["error"]["message"]
    relay.close("the test ends")
    assert relay.join(DEADLINE_SECONDS)
