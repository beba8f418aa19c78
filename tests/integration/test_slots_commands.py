"""`muniment slots` against a real llama-server, and what doctor, status and metrics say of it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.house import House, a_house
from tests.support.homes import a_folder
from tests.support.llama.models import TINY, ModelFiles
from tests.support.llama.process import LlamaServer

pytestmark = pytest.mark.timeout(180)

TEXT = "hello world " * 60


@dataclass(frozen=True)
class Served:
    """A house, and the server beside it."""

    house: House
    server: LlamaServer


@pytest.fixture(scope="module")
def served(model_files: ModelFiles) -> Iterator[Served]:
    """One for all tests here. The server is not probed unasked, since that takes a slot."""
    with ExitStack() as stack:
        folder = stack.enter_context(a_folder())
        server = stack.enter_context(LlamaServer(model_files.of(TINY), folder))
        house = stack.enter_context(
            a_house(
                MUNIMENT_BACKEND=server.url,
                MUNIMENT_LLAMA_SAVE_FOLDER=str(server.save_folder),
                MUNIMENT_SLOTS_PROBE="off",
            )
        )
        house.must("up")
        yield Served(house, server)


@pytest.fixture
def house(served: Served) -> House:
    return served.house


@pytest.fixture
def server(served: Served) -> LlamaServer:
    return served.server


def error_of(house: House, *words: str, content: bytes = b"") -> dict[str, str]:
    """The error of a command that fails."""
    ran = house.run("slots", *words, "--json", content=content)
    assert ran.code == 1
    error: dict[str, str] = json.loads(ran.err)["error"]
    return error


def test_a_probe_is_shown(house: House, server: LlamaServer) -> None:
    server.restart()
    probed = house.must("slots", "probe")
    standing = {one["kind"]: one["standing"] for one in probed["capabilities"]}
    assert standing["prefix_reuse"] == standing["restore_reuse"] == "yes"
    assert probed["cache_coherence"].startswith("can rewind anywhere")
    assert probed["restore_worth"][-1]["source"] == "probe"


def test_a_server_is_shown_with_its_slots(house: House, server: LlamaServer) -> None:
    (told,) = house.must("slots", "show")
    assert (told["name"], told["url"], told["is_usual"]) == ("main", server.url, True)
    assert told["condition"] == "ready"
    assert told["model"]["slots"] == len(told["slots"]) == 2
    plain = house.run("slots", "show").out.decode()
    assert f"server   main at {server.url}, the usual one" in plain
    assert "SLOT" in plain
    assert "start llama-server with --metrics" in plain
    assert house.must("slots", "show", "--server", "main")[0]["name"] == "main"
    assert error_of(house, "show", "--server", "nobody")["reason"] == "SERVER_UNKNOWN"


def test_a_slot_is_saved_listed_restored_and_removed(house: House, server: LlamaServer) -> None:
    server.complete(TEXT, 0)
    saved = house.must("slots", "snapshot", "--session", "cli")
    assert Path(saved["file_path"]).stat().st_size == saved["size_bytes"]
    assert (saved["session_id"], saved["slot_id"], saved["place"]) == ("cli", 0, "folder")
    (listed,) = house.must("slots", "snapshots", "--session", "cli")
    assert listed == {name: saved[name] for name in listed}
    assert house.must("slots", "snapshots", "--session", "other") == []
    assert listed in house.must("slots", "snapshots", "--project", str(house.project))
    assert saved["snapshot_id"] in house.run("slots", "snapshots").out.decode()
    for named in (saved["file_path"], saved["file_name"], saved["snapshot_id"]):
        restored = house.must("slots", "restore", named, "--slot", "1")
        assert (restored["restored"], restored["slot_id"]) == (True, 1)
        assert restored["restored_tokens"] == saved["tokens"]
    told = house.run("slots", "restore", saved["snapshot_id"]).out.decode()
    assert told.startswith(f"slot 0 of main holds {saved['tokens']} tokens of ")
    gone = house.must("slots", "delete", saved["snapshot_id"])
    assert gone == {"snapshot_id": saved["snapshot_id"], "file_removed": True, "note": None}
    assert not Path(saved["file_path"]).exists()
    assert error_of(house, "restore", saved["snapshot_id"])["reason"] == "SNAPSHOT_UNKNOWN"
    assert error_of(house, "delete", saved["snapshot_id"])["reason"] == "SNAPSHOT_UNKNOWN"


def test_a_slot_that_is_not_there_is_refused(house: House) -> None:
    error = error_of(house, "snapshot", "--slot", "7")
    assert (error["reason"], error["field"]) == ("SLOT_UNKNOWN", "slot_id")


def test_a_session_may_come_from_the_environment(house: House, server: LlamaServer) -> None:
    server.complete(TEXT, 0)
    ran = house.run("slots", "snapshot", "--json", environment={"MUNIMENT_SESSION": "outer"})
    assert ran.json["session_id"] == "outer"
    assert house.must("slots", "snapshot")["session_id"] is None


def test_tokens_are_the_servers(house: House, server: LlamaServer) -> None:
    counted = house.must("slots", "count", "--exact", content=TEXT.encode())
    assert counted["total"] == len(server.tokens(TEXT))
    assert counted["exact"] is True
    assert re.fullmatch(r"llama:[0-9a-f]{12}", counted["tokenizers"][0])
    one, two = house.project / "one.txt", house.project / "two.txt"
    one.write_text("one two")
    two.write_text("")
    both = house.must("slots", "count", str(one), str(two))
    assert [entry["file"] for entry in both["counts"]] == [str(one), str(two)]
    assert both["counts"][1]["tokens"] == 0
    assert both["total"] == len(server.tokens("one two"))


def test_a_conversation_is_counted_as_the_template_writes_it(
    house: House, server: LlamaServer
) -> None:
    messages = [{"role": "user", "content": "hi"}]
    for conversation in (messages, {"model": "m", "messages": messages}):
        content = json.dumps(conversation).encode()
        told = house.must("slots", "count", "--messages", content=content)
        assert "hi" in told["prompt"]
        assert told["tokens"] >= len(server.tokens("hi"))
        assert told["exact"] is True
    for wrong in (b"{", b"[1]", b'{"prompt": "x"}'):
        error = error_of(house, "count", "--messages", content=wrong)
        assert error["reason"] == "MESSAGES_INVALID"


def test_what_is_no_text_or_too_long_is_refused(house: House) -> None:
    error = error_of(house, "count", content=b"ab\xff")
    assert (error["reason"], error["field"]) == ("CONTENT_NOT_UTF8", "text")
    error = error_of(house, "count", content=b"x" * (3 * 1024 * 1024 + 1))
    assert (error["reason"], error["field"]) == ("CONTENT_TOO_LONG", "text")
    ran = house.run("slots", "count", "-", "one.txt", "--json")
    assert ran.code == 2


def test_the_store_of_slots_is_verified_too(house: House) -> None:
    told = house.must("verify-store")
    assert told["slots"]["findings"] == []
    assert told["slots"]["rows"] > 0
    assert b"in the store of slots" in house.run("verify-store").out


def test_a_slots_service_that_does_not_answer_is_a_failure_of_status(house: House) -> None:
    pid = house.service("slots")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        ran = house.run("status", "--json")
        plain = house.run("status")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (ran.code, plain.code) == (1, 1)
    assert ran.json["could_not_tell"] == ["slots"]
    assert "episodes" in ran.json["memory"]
    assert json.loads(ran.err)["error"]["message"] in ran.json["server_failure"]
    assert b"could not tell" in plain.out


def test_a_server_that_went_away_is_told_everywhere(house: House, server: LlamaServer) -> None:
    assert house.must("status")["server"]["condition"] == "ready"
    assert house.run("doctor").code == 0
    server.kill()
    try:
        (told,) = house.must("slots", "show")
        assert told["condition"] == "unreachable"
        assert "slots" not in told
        status = house.must("status")
        assert status["server"]["condition"] == "unreachable"
        assert status["could_not_tell"] == []
        assert b"main at" in house.run("status").out
        doctor = house.run("doctor", "--json")
        assert doctor.code == 1
        (problem,) = [one for one in doctor.json["findings"] if one["level"] == "problem"]
        assert problem["check"] == "server main"
        assert error_of(house, "snapshot")["reason"] == "LLAMA_UNREACHABLE"
        assert error_of(house, "count", "--exact", content=b"x")["reason"] == "LLAMA_UNREACHABLE"
        estimated = house.must("slots", "count", content=b"x")
        assert estimated["exact"] is False
        assert "cannot be reached" in estimated["note"]
    finally:
        server.restart()
