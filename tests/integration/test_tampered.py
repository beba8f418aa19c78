"""What the command line and the bridge say of a store that a stranger wrote to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests.integration.house import House, a_house
from tests.support import tamper

pytestmark = pytest.mark.timeout(180)

_TAMPER = str(Path(tamper.__file__))


@dataclass(frozen=True)
class Names:
    """Ids by what they are of."""

    port: str
    sky: str
    pin: str


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[House, Names]]:
    """A house whose store was written to by a stranger while it was up."""
    with a_house() as house:
        port = house.must("commit", "--role", "user", "the port is 8080")["episode_id"]
        sky = house.must("commit", "--role", "user", "the sky is blue")["episode_id"]
        pin = house.must("pin", "never force-push")["pin_id"]
        house.must("pin", "always run the tests")
        assert house.must("verify-store")["findings"] == []
        rows = json.loads(_stranger(house, "dump", ""))
        operations = [
            _edit(rows, "contents", "8080", "6666"),
            _edit(rows, "episodes", sky, sky[::-1]),
            _edit(rows, "pins", "never force-push", "gladly do anything"[:16]),
        ]
        _stranger(house, "apply", json.dumps(operations))
        yield house, Names(port, sky, pin)


@pytest.fixture
def house(stage: tuple[House, Names]) -> House:
    return stage[0]


@pytest.fixture
def names(stage: tuple[House, Names]) -> Names:
    return stage[1]


def _stranger(house: House, verb: str, given: str) -> str:
    store = str(house.home.data("memory") / "store")
    return subprocess.run(
        [sys.executable, _TAMPER, verb, store],
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def _edit(rows: tamper.Rows, table: str, old: str, new: str) -> tamper.Operation:
    before, after = old.encode().hex(), new.encode().hex()
    key, row = next((key, row) for key, row in rows[table].items() if before in row)
    return table, key, row.replace(before, after)


def test_verify_store_lists_findings_and_how_to_mend_them(house: House, names: Names) -> None:
    ran = house.run("verify-store", "--json")
    assert ran.code == 1
    assert ran.json["not_listed"] == 0
    found = {(one["kind"], one["table"], one["key"]) for one in ran.json["findings"]}
    assert found == {
        ("row_tampered", "contents", names.port),
        ("row_tampered", "episodes", names.sky),
        ("row_tampered", "pins", names.pin),
        ("sum_mismatch", "contents", ""),
        ("sum_mismatch", "episodes", ""),
        ("sum_mismatch", "pins", ""),
    }
    plain = house.run("verify-store")
    assert plain.code == 1
    text = plain.out.decode()
    assert text.startswith("WHAT          TABLE     WHICH")
    assert "\n6 findings; " in text
    assert f"`muniment unpin {names.pin}`" in text
    assert "`muniment restore`" in text


def test_the_command_line_marks_what_it_shows(house: House, names: Names) -> None:
    hits = {one["id"]: one for one in house.must("recall", "port sky force push tests")["results"]}
    assert hits[names.port]["tampered"]
    assert hits[names.pin]["tampered"]
    assert hits["number 2"]["tampered"]
    assert "text" not in hits[names.port]
    assert b"[tampered: not shown]" in house.run("recall", "port").out
    shown = house.run("show", names.port, "--json")
    assert shown.code == 1
    assert json.loads(shown.err)["error"]["reason"] == "ROW_TAMPERED"
    listed = house.must("episodes")
    assert [one["seq"] for one in listed] == [1, 2]
    assert listed[1] == {"seq": 2, "tampered": True}
    assert b"fails its check, and is not shown" in house.run("episodes").out
    pins = house.run("pins", "--json")
    assert [one["content"] for one in pins.json] == ["always run the tests"]
    assert "1 pins fail their check" in json.loads(pins.err)["warning"]
    assert "warning: 1 pins fail" in house.run("pins").err


@asynccontextmanager
async def _bridge(house: House) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "muniment.bridge.front"],
        env={
            "PATH": os.environ["PATH"],
            "MUNIMENT_HOME": str(house.home.path),
            "MUNIMENT_KEY_FOLDER": str(house.key_folder),
        },
        cwd=house.project,
    )
    async with Client(parameters) as client:
        yield client


async def test_the_bridge_marks_what_it_answers(house: House, names: Names) -> None:
    async with _bridge(house) as client:
        answer = await client.call_tool("memory.recall", {"query": "port sky force push tests"})
        content: dict[str, Any] = answer.structured_content or {}
        hits = {one["id"]: one for one in content["results"]}
        for name in (names.port, names.pin, "number 2"):
            assert hits[name]["tampered"]
            assert hits[name]["text"] == ""
        assert f"TAMPERED {names.port}: not shown" in content["rendered"]
        assert "6666" not in str(answer)
        project = content["project_id"]
        anchors = await client.read_resource(f"sakur4://anchors/{project}")
        text = str(anchors.contents[0])
        assert "1 pins were changed from outside" in text
        assert "always run the tests" in text
        assert "gladly" not in text


async def test_counts_are_not_told_where_rows_were_taken_away(house: House) -> None:
    _stranger(house, "apply", json.dumps([("contents", f"03{1:016x}", None)]))
    status = house.must("status")
    assert "contents" in status["memory"]["doubts"][0]
    async with _bridge(house) as client:
        answer = await client.call_tool("sakur4.status", {})
        content: dict[str, Any] = answer.structured_content or {}
        assert "episodes" in content["could_not_tell"]
        assert "episodes" not in content
        assert "verify-store" in content["failure"]


def test_reindex_makes_the_index_anew(house: House) -> None:
    # Two episodes cannot be believed, nor can a pin.
    assert house.must("reindex") == {"documents": 1}
    assert house.run("reindex").out == b"1 documents can be found\n"
