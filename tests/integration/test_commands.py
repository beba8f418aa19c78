"""The data commands against a real memory."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration.house import House, a_house

pytestmark = pytest.mark.timeout(120)

AWKWARD = "\ufeffhéllo\0\r\n漢字 \U0001f600\x1b[31m\u2028 end\n\n".encode()


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One house for all tests here; the first command starts it."""
    with a_house() as house:
        yield house


def test_a_content_comes_back_to_the_byte(house: House) -> None:
    told = house.must("commit", "--role", "user", "--session", "s1", content=AWKWARD)
    assert told["content_bytes"] == len(AWKWARD)
    assert told["content_sha256"] == hashlib.sha256(AWKWARD).hexdigest()
    assert house.run("show", told["episode_id"]).out == AWKWARD
    shown = house.must("show", told["episode_id"])
    assert shown == told | {"content": AWKWARD.decode()}


def test_a_long_content_comes_back_to_the_byte(house: House) -> None:
    content = "".join(f"line {number} 漢\n" for number in range(150_000)).encode()
    told = house.must("commit", "--role", "tool", "--tool-name", "bash", content=content)
    assert told["tool_name"] == "bash"
    assert house.run("show", told["episode_id"]).out == content


def test_what_is_not_utf8_is_refused(house: House) -> None:
    ran = house.run("commit", "--role", "user", "--json", content=b"abc\xff")
    assert ran.code == 1
    error = json.loads(ran.err)["error"]
    assert (error["reason"], error["field"]) == ("CONTENT_NOT_UTF8", "content")


def test_episodes_are_listed_in_order(house: House) -> None:
    first = house.must("commit", "--role", "user", "--session", "list", "one")
    second = house.must(
        "commit", "--role", "user", "--session", "list", "--corrects", first["episode_id"], "two"
    )
    listed = house.must("episodes", "--session", "list")
    assert [one["episode_id"] for one in listed] == [first["episode_id"], second["episode_id"]]
    assert listed[0]["superseded_by"] == second["episode_id"]
    assert listed[1]["corrects"] == first["episode_id"]
    assert set(listed[0]) == {
        "episode_id", "seq", "session_id", "role", "tool_name", "token_count", "tokenizer",
        "content_bytes", "content_sha256", "created_at", "superseded_by",
    }  # fmt: skip
    assert len(house.must("episodes", "--session", "list", "--limit", "1")) == 1
    assert first["episode_id"] in house.run("episodes").out.decode()


def test_a_session_may_come_from_the_environment(house: House) -> None:
    ran = house.run(
        "commit", "--role", "user", "--json", "text", environment={"MUNIMENT_SESSION": "outer"}
    )
    assert ran.json["session_id"] == "outer"
    assert house.must("commit", "--role", "user", "text")["session_id"] is None


def test_a_pin_comes_and_goes(house: House) -> None:
    pinned = house.must("pin", "never push to main", "--kind", "safety_constraint")
    assert pinned["kind"] == "safety_constraint"
    assert not pinned["already_pinned"]
    again = house.must("pin", "never push to main", "--kind", "user_correction")
    assert again["already_pinned"]
    assert again["previous_kind"] == "safety_constraint"
    assert again["pin_id"] in [one["pin_id"] for one in house.must("pins")]
    assert b"never push to main" in house.run("pins").out
    assert house.must("unpin", pinned["pin_id"])["content"] == "never push to main"
    assert pinned["pin_id"] not in [one["pin_id"] for one in house.must("pins")]
    assert house.run("unpin", pinned["pin_id"]).code == 1


def test_a_sessions_pins_are_listed_where_asked_for(house: House) -> None:
    pinned = house.must("pin", "only here", "--session", "narrow")
    assert house.must("pins") == []
    assert b"1 more in other sessions" in house.run("pins").out
    (listed,) = house.must("pins", "--session", "narrow")
    assert listed["pin_id"] == pinned["pin_id"]
    assert listed["session_id"] == "narrow"


def test_nothing_is_said_to_be_nothing(house: House) -> None:
    empty = house.project.parent / "empty"
    empty.mkdir()
    assert house.run("pins", "--project", str(empty)).out == b"nothing is pinned\n"
    assert house.run("episodes", "--project", str(empty)).out == b"no episodes\n"
    assert b"0 episodes, 0 pins\n" in house.run("status", "--project", str(empty)).out


def test_times_in_tables_are_to_the_second(house: House) -> None:
    committed = house.must("commit", "--role", "user", "--session", "time", "now")["created_at"]
    shown = house.run("episodes", "--session", "time").out.decode()
    assert f"{committed[:10]} {committed[11:19]}Z" in shown
    assert committed not in shown


def test_projects_need_no_folder(house: House) -> None:
    house.must("status")
    gone = house.project.parent / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    command = [sys.executable, "-m", "muniment.cli", "projects"]
    ran = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        env={**os.environ, "MUNIMENT_HOME": str(house.home.path)},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_recall_finds_what_was_committed(house: House) -> None:
    told = house.must("commit", "--role", "assistant", "the quokka lives on Rottnest")
    answer = house.must("recall", "quokka", "-k", "1")
    (hit,) = answer["results"]
    assert (hit["kind"], hit["id"]) == ("episode", told["episode_id"])
    assert hit["text"] == "the quokka lives on Rottnest"
    assert b"the quokka lives on Rottnest" in house.run("recall", "quokka").out
    assert house.must("recall", "quokka", "--session", "elsewhere")["results"] == []
    assert b"nothing found" in house.run("recall", "xyzzy").out


def test_projects_are_apart(house: House) -> None:
    other = house.project.parent / "other"
    other.mkdir()
    house.must("commit", "--role", "user", "--project", str(other), "a wombat")
    assert house.must("recall", "wombat")["results"] == []
    assert len(house.must("recall", "wombat", "--project", str(other))["results"]) == 1
    roots = [root for one in house.must("projects") for root in one["roots"]]
    assert {str(other), str(house.project)} <= set(roots)
    assert str(other).encode() in house.run("projects").out


def test_status_counts(house: House) -> None:
    before = house.must("status")["memory"]
    house.must("commit", "--role", "user", "one more")
    after = house.must("status")
    assert after["memory"]["episodes"] == before["episodes"] + 1
    assert after["project"]["root"] == str(house.project)
    assert after["could_not_tell"] == []
    assert f"{after['memory']['episodes']} episodes" in house.run("status").out.decode()


def test_metrics_are_prometheus_text(house: House) -> None:
    house.must("status")
    text = house.run("metrics").out.decode()
    assert "# TYPE muniment_rpc_calls_total counter" in text
    told = house.must("metrics")
    assert [one["service"] for one in told] == ["memory", "slots", "code"]


def test_the_log_is_json(house: House) -> None:
    house.must("status")
    lines = house.run("logs", "memory", "--json").out.splitlines()
    assert "serving" in [json.loads(line)["event"] for line in lines]
    assert b"serving  socket=" in house.run("logs", "memory").out


def test_an_unknown_episode_is_one_line(house: House) -> None:
    ran = house.run("show", "ep_none")
    assert (ran.code, ran.out) == (1, b"")
    assert ran.err.startswith("muniment: episode_id: ")
    assert ran.err.count("\n") == 1
