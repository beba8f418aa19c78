"""The feed: everything in order, in pages, as far back as it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment.kit.errors import PreconditionError, TamperedError
from muniment.kit.store import FeedPage, pack, read_feed
from muniment.kit.store.chain import CHAIN_START, chain_hash
from muniment.kit.store.tables import CHANGES
from tests.support.stores import COUNTS, EVENTS, LOOSE, NOTES, Stepped, demand_sound, text


@pytest.fixture
def stepped(tmp_path: Path) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store", retention_changes=40)
    yield opened
    opened.close()


def page(stepped: Stepped, after: int, limit: int) -> FeedPage:
    return stepped.look(lambda reader: read_feed(reader, after, limit))


def write_notes(stepped: Stepped, *values: str) -> None:
    for value in values:
        stepped.put(NOTES, "n", value=value)


def test_only_tables_of_the_feed_are_in_it(stepped: Stepped) -> None:
    stepped.put(LOOSE, "x", value="loose")
    assert page(stepped, 0, 9) == FeedPage((), 0)
    stepped.put(EVENTS, 1, value="event")
    stepped.run(lambda writer: writer.put(NOTES, "a", value=text("note")))
    stepped.put(COUNTS, "c", value="1")
    changes = page(stepped, 0, 9).changes
    assert [(number, change.table, change.key) for number, change in changes] == [
        (1, "events", pack(1)),
        (2, "notes", pack("a")),
    ]


def test_a_change_tells_what_was_there_and_digests_of_both(stepped: Stepped) -> None:
    write_notes(stepped, "one", "two")
    stepped.delete(NOTES, "n")
    stepped.delete(NOTES, "n")
    first, second, third = (change for _, change in page(stepped, 0, 9).changes)
    raw = [text(value).SerializeToString() for value in ("one", "two")]
    digests = [hashlib.sha256(each).digest() for each in raw]
    assert not first.HasField("before")
    assert (second.before, second.before_sha256, second.after_sha256) == (raw[0], *digests)
    assert (third.before, third.before_sha256) == (raw[1], digests[1])
    assert not third.HasField("after_sha256")


def test_pages_go_on_where_the_last_one_ended(stepped: Stepped) -> None:
    write_notes(stepped, *"abcdefg")
    found, position = [], 0
    while (one := page(stepped, position, 3)).changes:
        assert len(one.changes) <= 3
        found += [number for number, _ in one.changes]
        position = one.position
    assert found == list(range(1, 8))
    assert page(stepped, 7, 3) == FeedPage((), 7)
    write_notes(stepped, "h")
    assert page(stepped, 7, 3).position == 8


def test_the_chain_goes_through_all_changes_to_the_state(stepped: Stepped) -> None:
    write_notes(stepped, *"abcde")
    chain = CHAIN_START
    for number, change in page(stepped, 0, 9).changes:
        assert change.chain == chain_hash(chain, number, change)
        chain = change.chain
    assert stepped.look(lambda reader: reader.state().chain) == chain


def test_changes_beyond_the_retention_are_dropped_and_the_rest_hangs_together(
    stepped: Stepped,
) -> None:
    write_notes(stepped, *map(str, range(60)))
    state = stepped.look(lambda reader: reader.state())
    assert (state.position, state.floor) == (60, 20)
    assert stepped.look(lambda reader: reader.count(CHANGES)) == 40
    first = page(stepped, 20, 1).changes[0]
    assert first[1].chain == chain_hash(state.floor_chain, *first)
    demand_sound(stepped.store)


def test_a_reader_who_comes_too_late_is_told_where_to_begin(stepped: Stepped) -> None:
    write_notes(stepped, *map(str, range(60)))
    with pytest.raises(PreconditionError) as caught:
        page(stepped, 19, 5)
    assert caught.value.reason == "FEED_COMPACTED"
    assert "position 60" in str(caught.value)
    assert page(stepped, 60, 5) == FeedPage((), 60)


def test_a_reader_of_another_life_is_told(stepped: Stepped) -> None:
    write_notes(stepped, "a")
    with pytest.raises(PreconditionError) as caught:
        page(stepped, 2, 5)
    assert caught.value.reason == "FEED_SHORTER"


def test_a_large_batch_is_dropped_little_by_little(stepped: Stepped) -> None:
    def many(writer: Any) -> None:
        for number in range(1000):
            writer.put(EVENTS, number, value=text("e"))

    stepped.run(many)
    floors = [stepped.look(lambda reader: reader.state().floor)]
    while floors[-1] < stepped.store.position - 40:
        write_notes(stepped, "n")
        floors.append(stepped.look(lambda reader: reader.state().floor))
        assert 0 < floors[-1] - floors[-2] < 100
    assert floors[0] == 960
    demand_sound(stepped.store)


@pytest.mark.parametrize("harm", ["edit", "take"])
def test_a_change_that_was_edited_or_taken_away_is_not_passed_over(
    stepped: Stepped, harm: str
) -> None:
    write_notes(stepped, *"abc")

    def do_harm(transaction: Any, databases: Any) -> None:
        database = databases["changes"]
        raw = transaction.get(pack(2), db=database)
        if harm == "edit":
            transaction.put(pack(2), raw.replace(b"notes", b"notez"), db=database)
        else:
            transaction.delete(pack(2), db=database)

    stepped.raw(do_harm)
    assert page(stepped, 0, 1).position == 1
    assert page(stepped, 2, 9).position == 3
    for after in (0, 1):
        with pytest.raises(TamperedError):
            page(stepped, after, 9)


def test_the_end_of_the_feed_is_not_cut_off_unnoticed(stepped: Stepped) -> None:
    write_notes(stepped, *"abc")
    stepped.raw(lambda transaction, databases: transaction.delete(pack(3), db=databases["changes"]))
    with pytest.raises(TamperedError):
        page(stepped, 1, 9)


@pytest.mark.parametrize("harm", ["edit", "take"])
def test_retention_gets_past_what_was_tampered_with(stepped: Stepped, harm: str) -> None:
    write_notes(stepped, *map(str, range(40)))

    def do_harm(transaction: Any, databases: Any) -> None:
        database = databases["changes"]
        for number in (1, 5, 6):
            if harm == "edit":
                transaction.put(pack(number), b"rubbish", db=database)
            else:
                transaction.delete(pack(number), db=database)

    stepped.raw(do_harm)
    write_notes(stepped, *map(str, range(6)))
    # The chain cannot begin at a change that nobody believes.
    assert stepped.look(lambda reader: reader.state().floor) == 4
    write_notes(stepped, *map(str, range(30)))
    state = stepped.look(lambda reader: reader.state())
    assert state.floor == 36
    first = page(stepped, 36, 1).changes[0]
    assert first[1].chain == chain_hash(state.floor_chain, *first)
    assert stepped.look(lambda reader: reader.count(CHANGES)) == 40
