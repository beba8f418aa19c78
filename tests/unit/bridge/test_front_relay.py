"""What becomes of requests while the worker is away, seen from the harness."""

from __future__ import annotations

from pathlib import Path

from muniment.bridge.eras import SUBSCRIPTIONS_LIMIT
from muniment.bridge.front import URI_LIMIT_CHARACTERS
from muniment.kit.paths import Home
from tests.unit.bridge.wire import (
    FrontProcess,
    StarterSocket,
    WorkerSocket,
    initialize,
    modern,
    request,
)

CALL = {"name": "t", "arguments": {}}


def test_services_are_started_while_local_answers_flow(
    home: Home, manifest: Path, tmp_path: Path
) -> None:
    with (
        StarterSocket(home.path.parent / "starter") as starter,
        FrontProcess(home, manifest, starter=starter.path) as front,
    ):
        front.send(request(1, "tools/call", CALL), request(2, "resources/read"))
        with starter.asked() as wanted_for:
            assert wanted_for == str(home.path)
            assert front.ask(request(3, "ping"))["id"] == 3
            front.send(request(4, "tools/call", CALL), request(5, "tools/call", CALL))
            cancelled = {"requestId": 4}
            front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            assert front.ask(request(6, "tools/list"))["id"] == 6
            worker = WorkerSocket(home)
        with worker:
            peer, _ = worker.accept()
            frames = [peer.receive() for _ in range(3)]
            assert [frame["n"] for frame in frames] == [1, 2, 4]
            assert [frame["message"]["id"] for frame in frames] == [1, 2, 5]


def test_a_restarted_worker_gets_what_has_no_answer(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        with WorkerSocket(home) as worker:
            front.send(*(request(n, "tools/call", CALL) for n in (10, 11, 12, 13)))
            peer, hello = worker.accept()
            frames = [peer.receive() for _ in range(4)]
            peer.reply(frames[1], {"answered": True})
            assert front.receive()["id"] == 11
            cancelled = {"requestId": 13}
            front.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            assert peer.receive() == {"cancel": 4, "reason": None}
            again = WorkerSocket(home)
        with again:
            peer, second_hello = again.accept()
            assert second_hello == hello
            assert [peer.receive(), peer.receive()] == [frames[0], frames[2]]
            front.send(request(14, "tools/call", CALL))
            assert peer.receive()["n"] == 5
            peer.close()
            peer, _ = again.accept()
            resent = [peer.receive() for _ in range(3)]
            assert [frame["n"] for frame in resent] == [1, 3, 5]
            for frame in reversed(resent):
                peer.reply(frame, {})
            assert [front.receive()["id"] for _ in range(3)] == [14, 12, 10]


def test_deaths_under_one_call(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(request(1, "tools/call", CALL))
        for _ in range(3):
            peer, _ = worker.accept()
            assert peer.receive()["n"] == 1
            peer.close()
        peer, _ = worker.accept()
        peer.reply(peer.receive(), {"at": "last"})
        assert front.receive()["result"] == {"at": "last"}


def test_an_idle_connection_that_broke_is_made_again(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        for n in (1, 2):
            front.send(request(n, "tools/call", CALL))
            peer, _ = worker.accept()
            peer.reply(peer.receive(), {})
            assert front.receive()["id"] == n
            peer.close()


def test_garbage_from_the_worker_is_a_broken_connection(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(request(1, "tools/call", CALL))
        for garbage in (b"what?\n", b"[1]\n", b'{"n":1,"reply":7}\n', b'{"n":"1","reply":{}}\n'):
            peer, _ = worker.accept()
            peer.receive()
            peer.send_bytes(garbage)
        peer, _ = worker.accept()
        peer.reply(peer.receive(), {})
        assert front.receive()["result"] == {}
        front.close_input()
        assert len(front.complaints().splitlines()) == 4


def test_answers_in_pieces_and_several_at_once(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(*(request(n, "tools/call", CALL) for n in (1, 2, 3)))
        peer, _ = worker.accept()
        frames = b"".join(
            b'{"n":%d,"reply":{"jsonrpc":"2.0","id":%d,"result":{"t":"\xe8\xa8\x98"}}}\n' % (n, n)
            for n in (1, 2, 3)
        )
        cut = frames.index(b"\xa8")
        peer.send_bytes(frames[:cut])
        assert front.ask(request("p", "ping"))["id"] == "p"
        peer.send_bytes(frames[cut:])
        assert [front.receive()["result"]["t"] for _ in range(3)] == ["記"] * 3


def test_notifications_of_no_request_pass(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(request(1, "resources/subscribe", {"uri": "sakur4://anchors"}))
        peer, _ = worker.accept()
        peer.reply(peer.receive(), {})
        assert front.receive()["id"] == 1
        update = {"jsonrpc": "2.0", "method": "notifications/resources/updated"}
        peer.send({"n": None, "notify": update})
        assert front.receive() == update


def test_a_worker_that_comes_back_is_told_what_was_subscribed(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(initialize(0), request(1, "tools/call", CALL))
        peer, hello = worker.accept()
        assert hello["subscribed"] == []
        peer.reply(peer.receive(), {})
        uris = [f"sakur4://anchors/p{n}" for n in (1, 2, 3)]
        for method, uri in (
            *(("resources/subscribe", uri) for uri in (*uris, uris[0])),
            ("resources/unsubscribe", uris[1]),
            ("resources/unsubscribe", "sakur4://anchors/never"),
        ):
            front.send(request("s", method, {"uri": uri}))
            peer.reply(peer.receive(), {})
            while front.receive()["id"] != "s":
                continue
        # The modern era has no such request, so nothing is kept of it.
        refused = front.ask(modern("m", "resources/subscribe", uri="sakur4://anchors/modern"))
        assert refused["error"]["code"] == -32601
        front.send(request(2, "resources/subscribe", {"uri": 7}))
        peer.reply(peer.receive(), {})
        assert front.receive()["id"] == 2
        # And at once: who waits for changes need not ask for anything again.
        peer.close()
        _, hello = worker.accept()
        assert hello["subscribed"] == [uris[0], uris[2]]


def test_no_more_is_kept_of_subscriptions_than_may_be(home: Home, manifest: Path) -> None:
    with WorkerSocket(home) as worker, FrontProcess(home, manifest) as front:
        front.send(initialize(0))
        short = [f"s{number}" for number in range(SUBSCRIPTIONS_LIMIT + 1)]
        uris = ["x" * (URI_LIMIT_CHARACTERS + 1), *short]
        front.send(*(request(uri, "resources/subscribe", {"uri": uri}) for uri in uris))
        peer, _ = worker.accept()
        for _ in uris:
            peer.reply(peer.receive(), {})
        assert len([front.receive() for _ in (0, *uris)]) == len(uris) + 1
        peer.close()
        _, hello = worker.accept()
        assert hello["subscribed"] == short[:SUBSCRIPTIONS_LIMIT]


def test_a_failed_start_is_said_to_everyone_who_waits(home: Home, manifest: Path) -> None:
    with FrontProcess(home, manifest) as front:
        front.send(request(1, "tools/call", CALL), modern(2, "resources/read"))
        for answer in (front.receive(), front.receive()):
            assert answer["error"]["code"] == -32603
            message = answer["error"]["message"]
            assert "this test has no services" in message
            assert "nothing was recorded" in message
            assert "it can be sent again" in message
            assert "muniment doctor" in message
        front.send(request(3, "tools/call", CALL))
        assert front.receive()["id"] == 3
