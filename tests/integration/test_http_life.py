"""Calls over HTTP in their order, given up and cut short; streams; and the end of the server."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.house import House, a_house
from tests.support.http_client import Caller, Reply
from tests.support.http_server import HttpServer
from tests.waiting import until

pytestmark = pytest.mark.timeout(240)

UPDATED = "notifications/resources/updated"
LISTENING = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

CLIENTS = 8
SOON_SECONDS = 2.0


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """A house of our own, since its services are stopped and held."""
    with a_house() as house:
        house.must("up")
        yield house


@contextmanager
def serving(house: House) -> Iterator[HttpServer]:
    environment = {
        "MUNIMENT_HOME": str(house.home.path),
        "MUNIMENT_KEY_FOLDER": str(house.key_folder),
    }
    with HttpServer(cwd=house.project, environment=environment) as server:
        yield server


@pytest.fixture(scope="module")
def server(house: House) -> Iterator[HttpServer]:
    with serving(house) as server:
        yield server


@pytest.fixture
def caller(server: HttpServer, tmp_path: Path) -> Caller:
    """A client in a project of its own."""
    return Caller(server, f"/mcp?project={quote(str(tmp_path))}")


@contextmanager
def memory_held(house: House) -> Iterator[None]:
    """The memory service takes requests, and answers none until the block is left."""
    pid = house.service("memory")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Clients that wait for their answers side by side."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        yield pool


def send(caller: Caller, tool: str, **arguments: Any) -> HTTPConnection:
    """Send a call, and read no answer. The server has it when this returns."""
    message, headers = caller.modern("tools/call", {"name": tool, "arguments": arguments})
    connection = caller.send_only(message, headers)
    for _ in range(3):  # It reads what comes later, later.
        assert caller.ask("server/discover").status == 200
    return connection


def recalled(caller: Caller, query: str) -> list[str]:
    return [hit["text"] for hit in caller.call("memory.recall", query=query)["results"]]


# --- Order


def test_a_session_sees_what_it_sent_before(house: House, caller: Caller) -> None:
    """The recall is sent while the commit before it is not answered."""
    session = caller.open_session()
    with memory_held(house):
        commit = {"role": "user", "content": "ordered in a session"}
        first = session.send_only(
            session.request("tools/call", {"name": "memory.commit_episode", "arguments": commit})
        )
        assert session.ask_session("tools/list", request_id=3).status == 200
        recall = {"name": "memory.recall", "arguments": {"query": "ordered"}}
        second = session.send_only(session.request("tools/call", recall, request_id=2))
    assert session.read(first).content["seq"] > 0
    (hit,) = session.read(second).content["results"]
    assert hit["text"] == "ordered in a session"


def test_a_named_session_sees_what_was_sent_for_it_before(house: House, caller: Caller) -> None:
    arguments = {"role": "user", "content": "ordered by name", "session_id": "n"}
    with memory_held(house):
        first = send(caller, "memory.commit_episode", **arguments)
        second = send(caller, "memory.recall", query="ordered", session_id="n")
    assert caller.read(first).content["session_id"] == "n"
    (hit,) = caller.read(second).content["results"]
    assert hit["text"] == "ordered by name"


def test_an_id_that_is_under_way_in_its_session(house: House, caller: Caller) -> None:
    session, other = caller.open_session(), caller.open_session()
    with memory_held(house):
        recall = {"name": "memory.recall", "arguments": {"query": "x"}}
        first = session.send_only(session.request("tools/call", recall, request_id=4))
        assert other.ask_session("ping", request_id=4).result == {}
        for same in (4, "4"):
            refused = session.post({"jsonrpc": "2.0", "id": same, "method": "ping"})
            assert (refused.status, refused.message["id"]) == (400, same)
            assert "is under way" in refused.error["message"]
    assert session.read(first).content["results"] == []
    assert session.ask_session("ping", request_id=4).result == {}


def test_many_clients_at_once(caller: Caller, pool: ThreadPoolExecutor) -> None:
    sessions = [caller.open_session() for _ in range(CLIENTS)]

    def work(session: Caller) -> list[int]:
        return [
            session.call_session("memory.commit_episode", role="user", content=f"crowd {n}")["seq"]
            for n in range(5)
        ]

    numbers = [number for found in pool.map(work, sessions) for number in found]
    assert len(set(numbers)) == len(numbers) == 5 * CLIENTS


# --- Giving up


def test_what_has_not_begun_can_be_given_up_and_what_has_runs_to_its_end(
    house: House, caller: Caller
) -> None:
    arguments = {"role": "user", "session_id": "g"}
    with memory_held(house):
        begun = send(caller, "memory.commit_episode", content="given up: begun", **arguments)
        waits = send(caller, "memory.commit_episode", content="given up: waits", **arguments)
        waits.close()
        begun.close()
        for _ in range(3):
            assert caller.ask("server/discover").status == 200
    caller.call("memory.commit_episode", content="given up: last", **arguments)
    assert sorted(recalled(caller, "given up")) == ["given up: begun", "given up: last"]


def test_a_session_can_cancel(house: House, caller: Caller) -> None:
    session = caller.open_session()
    with memory_held(house):
        recall = {"name": "memory.recall", "arguments": {"query": "x"}}
        waiting = session.send_only(session.request("tools/call", recall, request_id=5))
        assert session.ask_session("ping").status == 200
        note = {"requestId": 5, "reason": "escape"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": note}
        assert session.post(message).status == 202
        assert b"result" not in session.read(waiting).body
    assert session.call_session("sakur4.status")["could_not_tell"] == []


# --- Streams


def anchors(caller: Caller) -> str:
    """The URI of the project's pins."""
    uri: str = caller.ask("resources/list").result["resources"][0]["uri"]
    assert uri.startswith("sakur4://anchors/")
    return uri


def test_listening_to_the_pins_of_a_project(caller: Caller) -> None:
    uri = anchors(caller)
    asked = {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}}
    with caller.listen("subscriptions/listen", asked) as stream:
        begun = stream.event()
        assert begun["method"] == LISTENING
        assert begun["params"]["notifications"]["resourceSubscriptions"] == [uri]
        for content in ("never force-push", "tabs, not spaces"):
            caller.call("memory.pin", content=content)
            told = stream.event()
            assert (told["method"], told["params"]["uri"]) == (UPDATED, uri)
            assert told["params"]["_meta"] == {SUBSCRIPTION: 1}


def test_a_session_is_told_of_what_it_subscribed_to(caller: Caller) -> None:
    uri, session = anchors(caller), caller.open_session()
    with session.stream("GET") as stream:
        assert stream.status == 200
        assert session.ask_session("resources/subscribe", {"uri": uri}).result == {}
        caller.call("memory.pin", content="first")
        told = stream.event()
        assert (told["method"], told["params"]["uri"]) == (UPDATED, uri)
        assert session.ask_session("resources/unsubscribe", {"uri": uri}).result == {}
        caller.call("memory.pin", content="told to nobody")
        assert session.ask_session("resources/subscribe", {"uri": uri}).result == {}
        caller.call("memory.pin", content="third")
        assert stream.event()["params"]["uri"] == uri
        assert session.send("DELETE").status == 200
        with pytest.raises(StopIteration):
            stream.event()
    refused = caller.open_session().ask_session("resources/subscribe", {"uri": "sakur4://x/y"})
    assert refused.error["code"] == -32602


def test_who_stops_listening_is_not_listened_for(house: House, caller: Caller) -> None:
    """The watch at the memory service ends with the last who listens."""
    uri = anchors(caller)
    asked = {"notifications": {"resourceSubscriptions": [uri]}}
    for _ in range(3):
        with caller.listen("subscriptions/listen", asked) as stream:
            assert stream.event()["method"] == LISTENING
        caller.call("memory.pin", content="one rule")
    with caller.listen("subscriptions/listen", asked) as stream:
        assert stream.event()["method"] == LISTENING
        caller.call("memory.pin", content="another rule")
        assert stream.event()["params"]["uri"] == uri


# --- Services that come and go


def test_services_that_were_stopped_are_started_by_the_next_call(
    house: House, caller: Caller
) -> None:
    caller.call("memory.commit_episode", role="user", content="before the stop", session_id="s")
    session = caller.open_session()
    assert house.must("down") == {"stopped": True}
    assert session.ask_session("tools/list").result["tools"]
    assert not (house.home.runtime / "supervisord.pid").exists()
    assert recalled(caller, "stop") == ["before the stop"]
    assert house.must("down") == {"stopped": True}
    (hit,) = session.call_session("memory.recall", query="stop")["results"]
    assert hit["text"] == "before the stop"


# --- The end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_calls_in_flight_are_answered_before_the_end(
    house: House, pool: ThreadPoolExecutor, number: signal.Signals
) -> None:
    with serving(house) as server:
        caller = Caller(server)
        session = caller.open_session()
        commit = {"role": "user", "content": f"in flight at {number.name}"}
        call = {"name": "memory.commit_episode", "arguments": commit}
        with memory_held(house):
            old = session.send_only(session.request("tools/call", call))
            modern = send(caller, "memory.commit_episode", **commit)
            ending = pool.submit(server.stop, number)
            until(lambda: not is_open(caller), "the server takes no more")
        assert caller.read(modern).content["seq"] > 0
        assert session.read(old).content["seq"] > 0
        assert ending.result() == 0


def test_what_cannot_be_answered_is_told_so_and_does_not_delay_the_end(house: House) -> None:
    with serving(house) as server:
        caller = Caller(server)
        session = caller.open_session()
        recall = {"name": "memory.recall", "arguments": {"query": "x"}}
        with memory_held(house):
            old = session.send_only(session.request("tools/call", recall, request_id=9))
            modern = send(caller, "memory.recall", query="x")
            assert server.stop() == 0
            for reply, number in ((session.read(old), 9), (caller.read(modern), 1)):
                assert reply.message["id"] == number
                assert "ended before the answer was there" in reply.error["message"]


def test_streams_do_not_delay_the_end(house: House) -> None:
    with serving(house) as server:
        caller = Caller(server)
        uri = anchors(caller)
        asked = {"notifications": {"resourceSubscriptions": [uri]}}
        session = caller.open_session()
        with caller.listen("subscriptions/listen", asked) as modern, session.stream("GET") as old:
            assert modern.event()["method"] == LISTENING
            assert old.status == 200
            ended = threading.Timer(SOON_SECONDS, server.process.kill)
            ended.start()
            assert server.stop() == 0
            ended.cancel()
            assert modern.event()["result"]["_meta"][SUBSCRIPTION] == 1
            for stream in (modern, old):
                with pytest.raises(StopIteration):
                    stream.event()


def test_who_reads_nothing_does_not_hinder_the_end(house: House) -> None:
    with serving(house) as server:
        caller = Caller(server)
        message, headers = caller.modern("tools/list")
        connection = caller.send_only(message, headers)
        assert isinstance(connection.sock, socket.socket)
        body = json.dumps(message).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        packet = "\r\n".join([*lines, "", ""]).encode() + body
        # The answers are more than the buffers between the two hold.
        with closing(connection):
            connection.sock.sendall(packet * 12000)
            assert server.stop() == 0


def is_open(caller: Caller) -> bool:
    connection = caller.connect()
    try:
        connection.connect()
    except ConnectionError:
        return False
    finally:
        connection.close()
    return True


def test_it_leaves_services_up_and_starts_again(house: House) -> None:
    replies: list[Reply] = []
    for _ in range(2):
        with serving(house) as server:
            replies.append(Caller(server).ask("tools/list"))
            assert server.stop() == 0
    assert replies[0].body == replies[1].body
    assert house.service("memory")["state"] == "RUNNING"
