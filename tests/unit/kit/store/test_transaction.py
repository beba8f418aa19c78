"""Transactions: what is read, what a writer sees of itself, and that the sums add up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Table, Writer, pack
from muniment.kit.store.keys import KeyPart
from muniment.v1 import store_pb2
from tests.support.rows import scan
from tests.support.stores import COUNTS, EVENTS, LOOSE, NOTES, Stepped, demand_sound, text

BOTH = pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def stepped(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store", sealed=request.param)
    yield opened
    opened.close()


def keys(
    reader: Reader, table: Table[store_pb2.StoredContent], *prefix: KeyPart, **after: Any
) -> list[tuple[KeyPart, ...]]:
    return [key for key, _ in scan(reader, table, *prefix, **after)]


def got(
    stepped: Stepped, table: Table[store_pb2.StoredContent], *key: KeyPart
) -> store_pb2.StoredContent | None:
    return stepped.look(lambda reader: reader.get(table, *key))


def fill(stepped: Stepped, table: Table[store_pb2.StoredContent], *all_keys: Any) -> None:
    def change(writer: Writer) -> None:
        for key in all_keys:
            writer.put(table, *key, value=text(str(key)))

    stepped.run(change)


def test_a_row_is_found_by_its_key_alone(stepped: Stepped) -> None:
    fill(stepped, LOOSE, ("a", 1), ("a", 2))
    assert got(stepped, LOOSE, "a", 1) == text("('a', 1)")
    for key in [("a",), ("a", 3), ("a", 1, ""), (1,)]:
        assert got(stepped, LOOSE, *key) is None


def test_a_scan_has_what_is_under_the_prefix_and_no_more(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",), ("a", 1), ("a", "x"), ("a\0", 1), ("a\0b",), ("ab", 1), ("b",))
    found = stepped.look(lambda reader: keys(reader, NOTES, "a"))
    assert set(found) == {("a",), ("a", 1), ("a", "x")}
    assert len(stepped.look(lambda reader: keys(reader, NOTES))) == 7
    assert stepped.look(lambda reader: keys(reader, NOTES, "c")) == []


def test_a_scan_goes_on_from_behind_a_key_whether_it_is_there_or_not(stepped: Stepped) -> None:
    fill(stepped, LOOSE, *(("p", number) for number in (1, 3, 5)), ("q", 9))

    def behind(*after: KeyPart) -> list[KeyPart]:
        return [key[1] for key in stepped.look(lambda r: keys(r, LOOSE, "p", after=after))]

    assert behind("p", 1) == [3, 5]
    assert behind("p", 2) == [3, 5]
    assert behind("p", 5) == []
    # In a sealed store q may come before p; either way it is another place.
    assert behind("q", 9) in ([], [1, 3, 5])


NAMES = st.sampled_from(["", "a", "a\0", "a\0b", "ab", "b", "é"])
PLACES = st.tuples(NAMES, st.integers(0, 4))


@BOTH
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(there=st.sets(PLACES, max_size=12), name=NAMES, after=PLACES)
def test_a_scan_is_of_whole_parts_and_in_order_whatever_is_there(
    sealed: bool,
    there: set[tuple[str, int]],
    name: str,
    after: tuple[str, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stepped = Stepped(tmp_path_factory.mktemp("scans") / "store", sealed=sealed)
    fill(stepped, NOTES, *there)
    below = stepped.look(lambda reader: keys(reader, NOTES, name))
    behind = stepped.look(lambda reader: keys(reader, NOTES, name, after=(name, after[1])))
    rest = stepped.look(lambda reader: keys(reader, NOTES, after=after))
    every = stepped.look(lambda reader: keys(reader, NOTES))
    stepped.close()
    assert below == sorted(key for key in there if key[0] == name)
    assert behind == [key for key in below if key > (name, after[1])]
    assert set(every) == there
    if not sealed:
        # The order of texts is that of their digests in a sealed store.
        assert every == sorted(there)
        assert rest == [key for key in every if key > after]


def test_long_keys_are_found_by_themselves_and_by_their_beginning(stepped: Stepped) -> None:
    long = [("p", "x" * size, end) for size in (300, 505, 600) for end in ("a", "b" * 300)]
    fill(stepped, NOTES, *long, ("q", "x" * 600))
    for key in long:
        assert got(stepped, NOTES, *key) == text(str(key))
    assert set(stepped.look(lambda reader: keys(reader, NOTES, "p"))) == set(long)
    stepped.delete(NOTES, *long[-1])
    assert set(stepped.look(lambda reader: keys(reader, NOTES, "p"))) == set(long[:-1])
    demand_sound(stepped.store)


def test_numbers_are_in_order_and_the_last_is_known(stepped: Stepped) -> None:
    assert stepped.look(lambda reader: reader.last_number(EVENTS)) == 0
    assert stepped.look(lambda reader: reader.count(EVENTS)) == 0
    assert stepped.rows(EVENTS) == {}
    numbers = [1, 255, 256, 2**32, 2**64 - 1]
    fill(stepped, EVENTS, *((number,) for number in reversed(numbers)))
    assert [key[0] for key in stepped.look(lambda reader: keys(reader, EVENTS))] == numbers
    assert stepped.look(lambda reader: reader.last_number(EVENTS)) == 2**64 - 1


def test_numbers_are_never_given_twice(stepped: Stepped) -> None:
    def append(writer: Writer) -> int:
        number = writer.next_number(EVENTS)
        writer.put(EVENTS, number, value=text("e"))
        return number

    assert [stepped.run(append) for _ in range(3)] == [1, 2, 3]
    stepped.delete(EVENTS, 3)
    assert stepped.run(append) == 4


def test_a_number_that_a_failed_change_took_is_given_to_the_next(stepped: Stepped) -> None:
    def fail(writer: Writer) -> None:
        assert writer.next_number(EVENTS) == 1
        raise ValueError("changed its mind")

    def append(writer: Writer) -> int:
        number = writer.next_number(EVENTS)
        writer.put(EVENTS, number, value=text("e"))
        return number

    failed = stepped.store.write(fail)
    following = stepped.store.write(append)
    stepped.step()
    assert isinstance(failed.exception(0), ValueError)
    assert following.result(0) == 1


def test_a_writer_sees_what_it_wrote_and_took_away(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",), ("b",), ("c",))

    def change(writer: Writer) -> None:
        writer.delete(NOTES, "b")
        writer.put(NOTES, "c", value=text("new"))
        writer.put(NOTES, "d", value=text("new"))
        assert set(keys(writer, NOTES)) == {("a",), ("c",), ("d",)}
        assert writer.get(NOTES, "b") is None
        assert writer.get(NOTES, "c") == writer.get(NOTES, "d") == text("new")
        writer.put(NOTES, "b", value=text("again"))
        assert writer.get(NOTES, "b") == text("again")
        assert writer.count(NOTES) == 4
        # Nobody else does before it is committed.
        assert set(stepped.rows(NOTES)) == {("a",), ("b",), ("c",)}

    stepped.run(change)
    demand_sound(stepped.store)


def test_later_changes_of_a_batch_see_the_earlier_ones(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",), ("b",))
    stepped.store.write(lambda writer: writer.delete(NOTES, "a"))
    stepped.store.write(lambda writer: writer.put(NOTES, "c", value=text("c")))
    seen = stepped.store.write(lambda writer: keys(writer, NOTES))
    stepped.step()
    assert set(seen.result(0)) == {("b",), ("c",)}


def test_rows_may_be_taken_away_and_written_while_they_are_scanned(stepped: Stepped) -> None:
    fill(stepped, NOTES, *((f"k{number:03}",) for number in range(200)))

    def halve(writer: Writer) -> int:
        met = 0
        for number, (key, _) in enumerate(scan(writer, NOTES)):
            met += 1
            if number % 2:
                writer.delete(NOTES, *key)
            else:
                writer.put(NOTES, *key, value=text("kept" * 50))
        return met

    assert stepped.run(halve) == 200
    assert set(stepped.rows(NOTES).values()) == {"kept" * 50}
    assert len(stepped.rows(NOTES)) == 100
    demand_sound(stepped.store)


def test_a_reader_sees_one_moment(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",))
    with stepped.store.read() as reader:
        for value in "bcdefgh":
            stepped.put(NOTES, "a", value=value)
        stepped.delete(NOTES, "a")
        assert reader.get(NOTES, "a") == text("('a',)")
        assert keys(reader, NOTES) == [("a",)]
        assert reader.state().position == 1
    assert stepped.rows(NOTES) == {}


def test_a_change_that_fails_leaves_nothing(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",))

    def fail(writer: Writer) -> None:
        writer.put(NOTES, "a", value=text("wrong"))
        writer.delete(NOTES, "a")
        writer.put(EVENTS, 1, value=text("wrong"))
        raise ValueError("changed its mind")

    before = stepped.store.write(lambda writer: writer.put(NOTES, "b", value=text("before")))
    failed = stepped.store.write(fail)
    after = stepped.store.write(lambda writer: writer.put(NOTES, "c", value=text("after")))
    stepped.step()
    assert before.exception(0) is after.exception(0) is None
    assert isinstance(failed.exception(0), ValueError)
    assert stepped.rows(NOTES) == {("a",): "('a',)", ("b",): "before", ("c",): "after"}
    assert stepped.rows(EVENTS) == {}
    assert stepped.store.position == 3
    demand_sound(stepped.store)


def test_a_row_that_somebody_took_away_can_be_put_right(stepped: Stepped) -> None:
    fill(stepped, NOTES, ("a",), ("b",))
    address = stepped.store.protection.address("a")
    stepped.raw(lambda transaction, databases: transaction.delete(address, db=databases["notes"]))
    with pytest.raises(TamperedError):
        stepped.look(lambda reader: reader.get(NOTES, "a"))
    with pytest.raises(TamperedError):
        stepped.rows(NOTES)
    stepped.delete(NOTES, "a")
    assert stepped.look(lambda reader: reader.get(NOTES, "a")) is None
    assert stepped.rows(NOTES) == {("b",): "('b',)"}
    stepped.delete(NOTES, "a")
    assert stepped.store.position == 3


def test_one_bad_row_is_told_in_its_place(stepped: Stepped) -> None:
    fill(stepped, NOTES, (1,), (2,), (3,))
    stepped.raw(
        lambda transaction, databases: transaction.put(pack(2), b"x", db=databases["notes"])
    )
    with stepped.store.read() as reader:
        found = [key for key, _ in reader.survey(NOTES)]
        assert found == [(1,), (), (3,)]
        with pytest.raises(TamperedError):
            list(scan(reader, NOTES))


def test_who_wrote_a_row_stands_in_it(stepped: Stepped) -> None:
    stepped.store.write(
        lambda writer: writer.put(LOOSE, "a", value=text("a")), written_by="bridge Pin"
    )
    stepped.step()

    def writers(reader: Reader) -> list[str]:
        rows = [reader.open_row(LOOSE, *row) for row in reader.raw_rows(LOOSE)]
        return [row.payload.written_by for row in rows]

    assert stepped.look(writers) == ["bridge Pin"]


TABLES = {"notes": NOTES, "events": EVENTS, "loose": LOOSE}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(TABLES)),
        st.sampled_from(["a", "b", "c\0", "d" * 600]),
        st.none() | st.text("xy", max_size=3),
        st.booleans(),
    ),
    max_size=12,
)


@BOTH
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(STEPS, max_size=4))
def test_the_sums_add_up_whatever_was_done(
    sealed: bool, batches: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stepped = Stepped(tmp_path_factory.mktemp("sums"), sealed=sealed)
    expected: dict[str, dict[str, str]] = {name: {} for name in TABLES}
    for steps in batches:
        for name, key, value, is_kept in steps:

            def change(
                writer: Writer,
                name: str = name,
                key: str = key,
                value: str | None = value,
                is_kept: bool = is_kept,
            ) -> None:
                if value is None:
                    writer.delete(TABLES[name], key)
                else:
                    writer.put(TABLES[name], key, value=text(value))
                if not is_kept:
                    raise ValueError("changed its mind")

            stepped.store.write(change)
            if is_kept and value is None:
                expected[name].pop(key, None)
            elif is_kept and value is not None:
                expected[name][key] = value
        stepped.step()
        demand_sound(stepped.store)
    for name, table in TABLES.items():
        assert {key[0]: value for key, value in stepped.rows(table).items()} == expected[name]
    stepped.close()
    again = Stepped(stepped.store.path, sealed=sealed)
    assert again.store.doubts == []
    demand_sound(again.store)
    again.close()


def test_a_mutable_table_beside_the_feed_knows_its_newest_row_too(stepped: Stepped) -> None:
    def count(writer: Writer, value: str) -> None:
        writer.put(EVENTS, writer.next_number(EVENTS), value=text("e"))
        writer.put(COUNTS, "c", value=text(value))

    address = stepped.store.protection.address("c")
    stepped.run(lambda writer: count(writer, "1"))
    old = stepped.raw(lambda transaction, names: transaction.get(address, db=names["counts"]))
    stepped.run(lambda writer: count(writer, "2"))
    assert stepped.rows(COUNTS) == {("c",): "2"}
    stepped.raw(
        lambda transaction, names: transaction.put(address, bytes(old or b""), db=names["counts"])
    )
    with pytest.raises(TamperedError):
        stepped.rows(COUNTS)
