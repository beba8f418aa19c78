"""Which row is the newest: true rows pass whenever a reader began, older ones never do."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from muniment.kit.errors import TamperedError
from muniment.kit.store.freshness import Entry, Freshness

TABLE = "notes"
ADDRESSES = [b"\x02a\0", b"\x02b\0", b"\x02a\0\x02c\0"]


def is_believed(freshness: Freshness, address: bytes, row: int | None, seen: int) -> bool:
    try:
        freshness.check(TABLE, address, row, seen)
    except TamperedError:
        return False
    return True


@dataclass
class Reading:
    """A reader: the position that it surely sees, and what it does see once it looks."""

    held: ExitStack
    seen: int
    snapshot: dict[bytes, Entry] | None = None


@dataclass
class Batch:
    written: dict[bytes, Entry] = field(default_factory=dict)


class FreshnessMachine(RuleBasedStateMachine):
    """Batches and readers in every order, beside the true history."""

    readers = Bundle("readers")

    @initialize()
    def begin(self) -> None:
        self.freshness = Freshness()
        self.position = 0
        self.disk: dict[bytes, Entry] = {}
        self.history: dict[bytes, list[Entry]] = {address: [(0, False)] for address in ADDRESSES}
        self.batch: Batch | None = None
        self.is_committed = False
        self.reading: list[Reading] = []

    @rule(writes=st.dictionaries(st.sampled_from(ADDRESSES), st.booleans(), min_size=1))
    def learn(self, writes: dict[bytes, bool]) -> None:
        if self.batch is not None:
            return
        self.batch = Batch()
        for address, present in writes.items():
            self.position += 1
            self.batch.written[address] = (self.position, present)
            self.freshness.learn(TABLE, address, self.position, present=present)

    @rule()
    def commit(self) -> None:
        if self.batch is not None and not self.is_committed:
            self.is_committed = True
            self.disk = self.disk | self.batch.written
            for address, entry in self.batch.written.items():
                self.history[address].append(entry)

    @rule()
    def finish(self) -> None:
        if self.batch is None:
            return
        if self.is_committed:
            self.freshness.reach(self.position)
        else:
            self.freshness.unlearn({(TABLE, one): two for one, two in self.batch.written.items()})
            self.position -= len(self.batch.written)
        self.batch, self.is_committed = None, False

    @rule(target=readers)
    def begin_reading(self) -> Reading:
        held = ExitStack()
        reading = Reading(held, held.enter_context(self.freshness.reading()))
        self.reading.append(reading)
        return reading

    @rule(reading=readers)
    def look(self, reading: Reading) -> None:
        if reading.snapshot is None:
            reading.snapshot = dict(self.disk)

    @rule(reading=readers)
    def end_reading(self, reading: Reading) -> None:
        reading.held.close()
        if reading in self.reading:
            self.reading.remove(reading)

    @invariant()
    def true_rows_pass_and_older_ones_do_not(self) -> None:
        for reading in self.reading:
            if reading.snapshot is None:
                continue
            found = set()
            for address in ADDRESSES:
                position, present = reading.snapshot.get(address, (0, False))
                row = position if present else None
                assert is_believed(self.freshness, address, row, reading.seen)
                if present:
                    found.add(address)
                self.old_rows_are_refused(reading.seen, address)
            for start in (b"", ADDRESSES[0]):
                missing = self.freshness.missing(TABLE, start, found, reading.seen)
                assert list(missing) == []

    def old_rows_are_refused(self, seen: int, address: bytes) -> None:
        surely_seen = max(entry for entry in self.history[address] if entry[0] <= seen)
        later = [entry for entry in self.history[address] if entry[0] > seen]
        for position, present in self.history[address]:
            if position < surely_seen[0] and present:
                assert not is_believed(self.freshness, address, position, seen)
        if surely_seen[1] and all(present for _, present in later) and self.batch is None:
            assert not is_believed(self.freshness, address, None, seen)
            assert list(self.freshness.missing(TABLE, address, set(ADDRESSES) - {address}, seen))

    def teardown(self) -> None:
        for reading in getattr(self, "reading", []):
            reading.held.close()


FreshnessMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
TestEveryOrder = FreshnessMachine.TestCase


def test_a_row_that_was_never_written_here_is_refused() -> None:
    freshness = Freshness()
    freshness.learn(TABLE, ADDRESSES[0], 4, present=True)
    freshness.reach(9)
    for position in (3, 5, 9, 12):
        assert not is_believed(freshness, ADDRESSES[0], position, 9)
        assert not is_believed(freshness, ADDRESSES[1], position, 9)


def test_what_lies_under_a_prefix_is_missed_and_nothing_beside_it() -> None:
    freshness = Freshness()
    beside = b"\x02a\0\xffb\0"
    for number, address in enumerate([*ADDRESSES, beside], 1):
        freshness.learn(TABLE, address, number, present=True)
    freshness.reach(4)
    missing = set(freshness.missing(TABLE, ADDRESSES[0], set(), 4))
    assert missing == {ADDRESSES[0], ADDRESSES[2]}
    assert list(freshness.missing("pins", b"", set(), 4)) == []


def test_it_knows_which_keys_should_have_a_row() -> None:
    freshness = Freshness()
    assert not freshness.expects(TABLE, ADDRESSES[0])
    freshness.learn(TABLE, ADDRESSES[0], 1, present=True)
    assert freshness.expects(TABLE, ADDRESSES[0])
    freshness.learn(TABLE, ADDRESSES[0], 2, present=False)
    assert not freshness.expects(TABLE, ADDRESSES[0])


@pytest.mark.parametrize("batches", [3000])
def test_a_reader_that_stays_long_makes_nobody_slow(batches: int) -> None:
    freshness = Freshness()
    looked_at = 0
    with freshness.reading() as seen:
        for position in range(1, batches):
            freshness.learn(TABLE, ADDRESSES[0], position, present=True)
            freshness.reach(position)
        changes = vars(freshness)["_changes"][TABLE][ADDRESSES[0]]
        looked_at = len(changes)
        assert is_believed(freshness, ADDRESSES[0], None, seen)
    for position in range(batches, 2 * batches):
        freshness.learn(TABLE, ADDRESSES[0], position, present=True)
        freshness.reach(position)
    assert len(changes) < 10 < looked_at
