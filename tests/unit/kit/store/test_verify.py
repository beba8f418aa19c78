"""Verification of any store: what it finds in tables that it knows nothing of."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lmdb
import pytest

from muniment.kit.progress import Report
from muniment.kit.store import Reader
from muniment.kit.store.findings import FINDINGS_LIMIT, Findings, Kind
from muniment.kit.store.keys import KeyPart, pack, unpack
from muniment.kit.store.verify import Verified, verify_store
from muniment.v1 import maintenance_pb2, store_pb2
from tests.support.stores import COUNTS, EVENTS, LOOSE, NOTES, Stepped, text
from tests.waiting import until

Databases = Mapping[str, Any]


class Plain:
    """A service that knows nothing of its tables."""

    def __init__(self) -> None:
        self.index_checks = 0

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        return " ".join(map(str, key))

    def mend(self, kind: Kind, table: str, key: str) -> str | None:
        return "write it again" if table == NOTES.name else None

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        assert reader.state() == state

    def check_index(self, findings: Findings, report: Report) -> None:
        self.index_checks += 1


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def stepped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store", sealed=request.param, retention_changes=20)
    for number in range(1, 31):
        opened.put(EVENTS, number, value="e")
    for name in ("a", "b", "c"):
        opened.put(NOTES, name, value=f"{name}1")
        opened.put(COUNTS, name, value="1")
        opened.put(LOOSE, name, value="x")
    opened.put(NOTES, "a", value="a2")
    opened.delete(NOTES, "c")
    yield opened
    opened.close()


def verify(stepped: Stepped, report: Report = lambda step, done, total: None) -> Verified:
    return verify_store(stepped.store, Plain(), report)


def found(stepped: Stepped) -> list[tuple[str, str, str]]:
    name = maintenance_pb2.FindingKind.Name
    return [
        (name(one.kind).removeprefix("FINDING_KIND_"), one.table, one.key)
        for one in verify(stepped).findings.listed
    ]


def address(stepped: Stepped, *key: KeyPart) -> bytes:
    return stepped.store.protection.address(*key)


def take(stepped: Stepped, table: str, *key: KeyPart) -> bytes:
    """Take a row away from outside; the row."""
    where = address(stepped, *key)

    def change(transaction: lmdb.Transaction, databases: Databases) -> bytes:
        row = transaction.pop(where, db=databases[table])
        assert row is not None
        return bytes(row)

    return stepped.raw(change)


def put(stepped: Stepped, table: str, row: bytes, *key: KeyPart) -> None:
    """Put a row there from outside."""
    where = address(stepped, *key)
    stepped.raw(lambda transaction, databases: transaction.put(where, row, db=databases[table]))


def test_all_is_as_it_was_written(stepped: Stepped) -> None:
    steps: list[str] = []
    verified = verify(stepped, lambda step, done, total: steps.append(f"{step} {done}/{total}"))
    assert verified.findings.listed == []
    assert verified.findings.total == 0
    assert verified.state.position == stepped.store.position
    assert verified.state.floor > 0
    assert verified.changes == verified.state.position - verified.state.floor
    assert verified.rows == verified.changes + 30 + 2 + 3 + 3
    assert "checking table events 30/30" in steps
    assert f"following the feed {verified.changes}/{verified.changes}" in steps


def test_missing_rows_are_found_by_the_feed_or_by_memory_or_as_a_whole(stepped: Stepped) -> None:
    take(stepped, "notes", "a")
    take(stepped, "counts", "a")
    take(stepped, "events", 1)
    take(stepped, "loose", "a")
    name = "a" if not stepped.store.protection.sealed else str(pack_digest(stepped, "a"))
    assert found(stepped) == [
        ("SUM_MISMATCH", "notes", ""),
        ("SUM_MISMATCH", "events", ""),
        ("SUM_MISMATCH", "counts", ""),
        ("SUM_MISMATCH", "loose", ""),
        ("ROW_MISSING", "notes", "a"),
        ("ROW_MISSING", "counts", name),
    ]


def pack_digest(stepped: Stepped, part: str) -> KeyPart:
    """What a sealed store has in place of a text in a key."""
    return unpack(address(stepped, part))[0]


def test_what_is_found_says_how_to_mend_it(stepped: Stepped) -> None:
    take(stepped, "notes", "a")
    take(stepped, "loose", "a")
    mends = {one.table: one.mend for one in verify(stepped).findings.listed}
    assert mends["notes"] == "write it again"
    assert "muniment restore" in mends["loose"]


def test_the_feed_names_a_row_that_cannot_be_read(stepped: Stepped) -> None:
    put(stepped, "notes", b"junk", "b")
    assert found(stepped) == [
        ("SUM_MISMATCH", "notes", ""),
        ("ROW_TAMPERED", "notes", "b"),
    ]


def test_an_older_row_is_found_once(stepped: Stepped) -> None:
    row = take(stepped, "notes", "b")
    put(stepped, "notes", row, "b")
    assert found(stepped) == []
    stepped.put(NOTES, "b", value="b2")
    put(stepped, "notes", row, "b")
    assert found(stepped) == [("SUM_MISMATCH", "notes", ""), ("ROW_OLDER", "notes", "b")]


def test_each_break_of_the_feed_is_found(stepped: Stepped) -> None:
    last = stepped.store.position
    take(stepped, "changes", last - 5)
    put(stepped, "changes", b"junk", last - 3)
    row = take(stepped, "changes", last)
    put(stepped, "changes", row, (1 << 64) - 1)
    assert found(stepped) == [
        ("SUM_MISMATCH", "changes", ""),
        ("FEED_BROKEN", "changes", str(last - 5)),
        ("FEED_BROKEN", "changes", str(last - 3)),
        ("FEED_BROKEN", "changes", str((1 << 64) - 1)),
        ("FEED_BROKEN", "changes", str(last)),
    ]


def test_of_many_findings_the_first_are_listed(tmp_path: Path) -> None:
    stepped = Stepped(tmp_path / "store")

    def fill(writer: Any) -> None:
        for number in range(FINDINGS_LIMIT + 50):
            writer.put(EVENTS, number, value=text("e"))

    stepped.run(fill)

    def spoil(transaction: lmdb.Transaction, databases: Databases) -> None:
        for number in range(FINDINGS_LIMIT + 50):
            transaction.put(pack(number), b"junk", db=databases["events"])

    stepped.raw(spoil)
    findings = verify(stepped).findings
    assert findings.total == FINDINGS_LIMIT + 50 + 1
    assert len(findings.listed) == FINDINGS_LIMIT + 1
    stepped.close()


def test_it_ends_when_nobody_waits_for_it(stepped: Stepped) -> None:
    class LeftError(Exception):
        pass

    def leave(step: str, done: int, total: int) -> None:
        raise LeftError

    with pytest.raises(LeftError):
        verify(stepped, leave)
    # Nothing of the store is held.
    with stepped.store.standing_still():
        pass


def test_it_gives_way_to_who_needs_the_store_alone(stepped: Stepped) -> None:
    begun: list[int] = []
    been_alone = threading.Event()

    def be_alone() -> None:
        with stepped.store.standing_still():
            been_alone.set()

    other = threading.Thread(target=be_alone)

    def report(step: str, done: int, total: int) -> None:
        if step != "checking table changes":
            return
        begun.append(done)
        if len(begun) == 1:
            other.start()
            until(lambda: stepped.store.is_wanted or been_alone.is_set(), "somebody waits")

    assert verify(stepped, report).findings.listed == []
    assert been_alone.is_set()
    assert len(begun) == 2
    other.join()


def test_the_index_is_checked_when_no_moment_is_held(stepped: Stepped) -> None:
    class Careful(Plain):
        def check_index(self, findings: Findings, report: Report) -> None:
            with stepped.store.standing_still():
                self.index_checks += 1

    domain = Careful()
    verify_store(stepped.store, domain, lambda step, done, total: None)
    assert domain.index_checks == 1
