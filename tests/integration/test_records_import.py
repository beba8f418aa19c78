"""Another program's records are taken over, from files that the program itself made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.house import House, a_house
from tests.support.peer_stores import TENANT, fill_peer_store, make_peer_store, state_of_folder
from tests.support.tools import python_with

pytestmark = pytest.mark.timeout(300)

_PROGRAM = "sibyl-memory-client==0.8.1"

_FILL = """
import sys
from sibyl_memory_client import MemoryClient
tenants = sys.argv[2:]
for tenant in tenants:
    client = MemoryClient.local(sys.argv[1], tenant_id=tenant, tier="free")
    for number in range(60):
        body = {"value": f"fact {number} \\u00e9\\u6f22\\u5b57", "n": number / 7}
        client.set_entity("facts", f"fact-{number}", body, status="new" if number % 2 else None)
    client.set_entity("facts", "fact-3", {"value": "changed"})
    client.archive_entity("facts", "fact-5", "no longer true")
    client.set_state("plan", ["ship", {"then": "rest"}])
    client.set_reference("handbook", "Deploy on Mondays.", metadata={"by": "ann"})
    client.set_reference("bare", "No metadata.")
    for number in range(20):
        client.write_event(acted={"kind": "step", "body": {"n": number}}, extra={"name": "x"})
    client.write_event(evaluated={"a": 1}, acted="b", forward=[1], ts="2026-01-02T03:04:05.678Z")
print("written", flush=True)
if sys.stdin.readline():
    pass
"""
"""Fills a store for the tenants, and keeps it open until standard input ends."""

_ROWS = {
    "entities": 59,
    "state_documents": 1,
    "reference_documents": 2,
    "journal_events": 21,
    "archived_entities": 1,
}


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with a_house() as house:
        house.must("up")
        yield house


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a store is to be, in a folder of its own."""
    (tmp_path / "other").mkdir(mode=0o700)
    return tmp_path / "other" / "memory.db"


def start_program(store: Path, *tenants: str) -> subprocess.Popen[str]:
    """The other program, which has filled its store and has it open."""
    command = [python_with("peer-records", _PROGRAM), "-c", _FILL, str(store), *tenants]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def fill(store: Path, *tenants: str) -> None:
    start_program(store, *tenants).communicate()


def import_from(house: House, store: Path, *words: str) -> dict[str, Any]:
    told: dict[str, Any] = house.must("records", "import-from", str(store), *words)
    return told


def test_a_store_is_taken_over(house: House, store: Path) -> None:
    fill(store, TENANT)
    before = state_of_folder(store.parent)
    looked = import_from(house, store, "--dry-run", "--tenant", "one")
    assert (looked["rows"], looked["left_out"]) == (_ROWS, [])
    assert "taken" not in looked
    told = import_from(house, store, "--tenant", "one")
    assert sum(told["taken"].values()) == told["verified"] == sum(_ROWS.values())
    assert (told["from_tenant"], told["tenant"]) == (TENANT, "one")
    again = import_from(house, store, "--tenant", "one")
    assert (again["taken"], again["same"]) == ({}, sum(_ROWS.values()))
    assert state_of_folder(store.parent) == before
    _compare(house, store, "one")


def _compare(house: House, store: Path, tenant: str) -> None:
    """Hold what is here against what the program itself says."""
    script = """
import json, sys
from sibyl_memory_client import MemoryClient
client = MemoryClient.local(sys.argv[1])
print(json.dumps({
    "entities": client.list_entities("facts", limit=1000),
    "plan": client.get_state("plan"),
    "handbook": client.get_reference("handbook"),
    "events": client.read_events(limit=100),
}))
"""
    command = [python_with("peer-records", _PROGRAM), "-c", script, str(store)]
    there = json.loads(subprocess.run(command, capture_output=True, check=True, env={}).stdout)
    here = house.must("records", "list", "--limit", "0", "--tenant", tenant)
    keys = ("id", "category", "name", "status", "body", "created_at", "updated_at")
    rows = {one["name"]: {key: one[key] for key in keys} for one in there["entities"]}
    assert {one["name"]: _with_moments(one) for one in here} == {
        name: _with_moments(row) for name, row in rows.items()
    }
    updated = [_with_moments(one)["updated_at"] for one in here]
    assert updated == sorted(updated, reverse=True)
    plan = house.must("records", "state", "plan", "--tenant", tenant)
    assert plan["body"] == there["plan"]["body"]
    assert _with_moments(plan)["updated_at"] == _with_moments(there["plan"])["updated_at"]
    handbook = house.must("records", "reference", "handbook", "--tenant", tenant)
    assert (handbook["body"], handbook["metadata"]) == ("Deploy on Mondays.", {"by": "ann"})
    journal = house.must("records", "journal", "--limit", "0", "--tenant", tenant)
    assert {one["id"] for one in journal} == {one["id"] for one in there["events"]}
    assert journal[-1]["ts"] == "2026-01-02T03:04:05.678Z"
    assert (journal[-1]["evaluated"], journal[-1]["forward"]) == ({"a": 1}, [1])


def _with_moments(row: dict[str, Any]) -> dict[str, Any]:
    """The row with times for their texts: who writes no zeros means the same moment."""
    times = {key: text for key, text in row.items() if key.endswith("_at") and text is not None}
    return row | {key: datetime.fromisoformat(text) for key, text in times.items()}


def test_a_store_in_use_is_taken_over(house: House, store: Path) -> None:
    process = start_program(store, TENANT)
    try:
        before = state_of_folder(store.parent)
        assert "memory.db-wal" in before
        told = import_from(house, store, "--tenant", "used")
        assert told["verified"] == sum(_ROWS.values())
        assert state_of_folder(store.parent) == before
    finally:
        process.communicate()
    assert not list(house.home.runtime.glob("import-*"))


def test_a_tenant_has_to_be_chosen_where_there_are_several(house: House, store: Path) -> None:
    fill(store, TENANT, "team-b")
    ran = house.run("records", "import-from", str(store), "--json", "--tenant", "two")
    error = json.loads(ran.err)["error"]
    assert (ran.code, error["reason"], error["field"]) == (
        *(1, "PEER_TENANT_UNKNOWN"),
        "--from-tenant",
    )
    assert "team-b" in error["fix"]
    told = import_from(house, store, "--from-tenant", "team-b", "--tenant", "two")
    assert told["verified"] == sum(_ROWS.values())


def test_what_differs_here_and_what_is_no_record_is_listed(house: House, store: Path) -> None:
    fill_peer_store(make_peer_store(store))
    import sqlite3

    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE entities SET body = '{' WHERE name = 'bob'")
    connection.close()
    house.must("records", "remember", "people", "ann", "mine", "--tenant", "mixed")
    ran = house.run("records", "import-from", str(store), "--tenant", "mixed")
    assert ran.code == 0, ran.err
    out = ran.out.decode()
    assert f"has of tenant {TENANT}: entities 2, state_documents 1" in out
    assert "4 taken, 0 here already, 1 kept as they are\n" in out
    assert "kept: entity people/ann differs from the file's\n" in out
    assert "4 were read back and are as in the file\n" in out
    assert "entities, row 2 (people/bob) is left out: body is no JSON" in ran.err
    mine = house.must("records", "recall", "people", "ann", "--tenant", "mixed")
    assert mine["body"] == {"value": "mine"}


def test_the_file_may_come_from_the_environment(house: House, store: Path) -> None:
    fill_peer_store(make_peer_store(store))
    variables = {"SIBYL_MEMORY_DB": str(store)}
    ran = house.run("records", "import-from", "--dry-run", "--json", environment=variables)
    assert ran.json["file"] == str(store)
    found = house.run("doctor", "--json", environment=variables).json["findings"]
    told = " ".join(one["message"] for one in found if one["check"] == "environment")
    assert f"muniment records import-from {store}" in told
    missing = house.run("records", "import-from", "--json")
    assert missing.code == 2
