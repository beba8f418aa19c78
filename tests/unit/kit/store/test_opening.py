"""What is believed of a store that was written to while nobody had it open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import pytest

from muniment.kit.errors import TamperedError
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Table
from muniment.kit.store.keys import pack
from muniment.v1 import store_pb2
from tests.support.stores import COUNTS, EVENTS, NOTES, Stepped, text

Rows = dict[bytes, bytes]
Tables = dict[str, Rows]


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path / "store", sealed=request.param)


class Place:
    """Where a store is that is opened, and written to by others, in turns."""

    def __init__(self, folder: Path, *, sealed: bool) -> None:
        self.folder = folder
        self.sealed = sealed

    @contextmanager
    def opened(self, **options: Any) -> Iterator[Stepped]:
        # Each life differs, as it does outside of tests.
        stepped = Stepped(self.folder, sealed=self.sealed, randomness=SystemRandomness(), **options)
        yield stepped
        stepped.close()

    def rows(self) -> Tables:
        with self._environment() as (environment, databases), environment.begin() as transaction:
            return {
                name: {bytes(key): bytes(row) for key, row in transaction.cursor(db=database)}
                for name, database in databases.items()
            }

    def change(self, change: Callable[[Tables], object]) -> None:
        """Make the rows what `change` makes of them."""
        old, new = self.rows(), self.rows()
        change(new)
        with self._environment() as (environment, databases):
            for name, database in databases.items():
                with environment.begin(write=True, db=database) as transaction:
                    for key in old[name].keys() - new[name].keys():
                        transaction.delete(key)
                    for key, row in new[name].items():
                        transaction.put(key, row)

    def put_back(self, before: Tables, *names: str) -> None:
        """Make whole tables what they were."""
        self.change(lambda tables: tables.update({name: before[name] for name in names}))

    @contextmanager
    def _environment(self) -> Iterator[tuple[lmdb.Environment, Mapping[str, Any]]]:
        with lmdb.open(str(self.folder), max_dbs=20) as environment:
            with environment.begin() as transaction:
                names = [bytes(name) for name, _ in transaction.cursor()]
            yield environment, {name.decode(): environment.open_db(name) for name in names}


def believed(stepped: Stepped, table: Table[store_pb2.StoredContent] = NOTES) -> dict[str, str]:
    with stepped.store.read() as reader:
        return {
            str(key[0]): row.text
            for key, row in reader.survey(table)
            if not isinstance(row, TamperedError)
        }


def disbelieved(stepped: Stepped) -> int:
    with stepped.store.read() as reader:
        return sum(isinstance(row, TamperedError) for _, row in reader.survey(NOTES))


def fill(stepped: Stepped) -> None:
    """Notes before the floor of a feed that keeps ten changes, and behind it."""
    for name in ("a", "b", "c"):
        stepped.put(NOTES, name, value=f"{name}1")
    for number in range(1, 21):
        stepped.put(EVENTS, number, value="e")
    for name in ("d", "e"):
        stepped.put(NOTES, name, value=f"{name}1")


def test_nothing_is_in_doubt(place: Place) -> None:
    with place.opened(retention_changes=10) as stepped:
        fill(stepped)
    with place.opened(retention_changes=10) as stepped:
        assert stepped.store.doubts == []
        assert disbelieved(stepped) == 0
        assert sorted(believed(stepped)) == ["a", "b", "c", "d", "e"]


def test_a_row_that_was_slipped_in_costs_no_other_its_belief(place: Place) -> None:
    with place.opened(retention_changes=10) as stepped:
        fill(stepped)
    place.change(lambda tables: tables["notes"].update({pack("f"): b"junk"}))
    with place.opened(retention_changes=10) as stepped:
        assert sorted(believed(stepped)) == ["a", "b", "c", "d", "e"]
        assert disbelieved(stepped) == 1


def test_a_row_that_the_feed_knows_to_be_gone_costs_no_other_its_belief(place: Place) -> None:
    with place.opened(retention_changes=10) as stepped:
        fill(stepped)
    before = place.rows()
    with place.opened(retention_changes=10) as stepped:
        stepped.delete(NOTES, "d")
    place.change(
        lambda tables: tables["notes"].update(
            {key: row for key, row in before["notes"].items() if key not in tables["notes"]}
        )
    )
    with place.opened(retention_changes=10) as stepped:
        assert stepped.store.doubts == ["rows of table notes were changed from outside"]
        assert sorted(believed(stepped)) == ["a", "b", "c", "e"]
        assert disbelieved(stepped) == 1


def test_what_the_feed_does_not_prove_is_not_believed_beside_an_older_row(place: Place) -> None:
    with place.opened(retention_changes=10) as stepped:
        fill(stepped)
    before = place.rows()
    with place.opened(retention_changes=10) as stepped:
        stepped.put(NOTES, "d", value="d2")
    place.put_back(before, "notes")
    with place.opened(retention_changes=10) as stepped:
        # Of those before the feed's beginning any could be an older one too.
        assert believed(stepped) == {"e": "e1"}
        assert disbelieved(stepped) == 4
        stepped.put(NOTES, "a", value="a2")
    with place.opened(retention_changes=10) as stepped:
        assert believed(stepped) == {"a": "a2", "e": "e1"}


def test_rows_that_were_put_back_with_their_changes(place: Place) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
        stepped.put(NOTES, "b", value="b1")
    before = place.rows()
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a2")
    place.put_back(before, "notes", "changes")
    with place.opened() as stepped:
        assert stepped.store.doubts == ["rows of table notes were changed from outside"]
        with stepped.store.read() as reader:
            assert "changes 3 to 3 are gone from the end of the feed" in reader.doubts()
        assert believed(stepped) == {}
        stepped.put(NOTES, "c", value="c1")
        assert stepped.store.position == 4
    with place.opened() as stepped:
        assert believed(stepped) == {"c": "c1"}


def test_rows_that_were_put_back_with_changes_and_account(place: Place) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
    before = place.rows()
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a2")
        stepped.put(EVENTS, 1, value="e1")
    place.put_back(before, "notes", "changes", "meta")
    with place.opened() as stepped:
        # The event is of a later change than the account says.
        assert believed(stepped) == {}
        stepped.put(NOTES, "b", value="b1")
        assert stepped.store.position == 4
    with place.opened() as stepped:
        assert believed(stepped) == {"b": "b1"}
        assert believed(stepped, EVENTS) == {"1": "e1"}


def test_an_older_account_does_not_prove_older_rows(place: Place) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
    before = place.rows()
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a2")
    place.put_back(before, "notes", "meta")
    for _ in range(2):
        with place.opened() as stepped:
            assert believed(stepped) == {}
            with stepped.store.read() as reader:
                doubt = "an older account of the store was put in place of its own"
                assert doubt in reader.doubts()


@pytest.mark.parametrize("row", [None, b"junk"], ids=["gone", "junk"])
def test_without_an_account_nothing_mutable_is_believed(place: Place, row: bytes | None) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
        stepped.put(COUNTS, "n", value="1")
        incarnation = stepped.store.incarnation

    def harm(tables: Tables) -> None:
        account = max(tables["meta"], key=lambda key: len(tables["meta"][key]))
        del tables["meta"][account]
        if row is not None:
            tables["meta"][account] = row

    place.change(harm)
    with place.opened() as stepped:
        assert stepped.store.incarnation != incarnation
        assert believed(stepped) == {}
        # Nothing tells of a table outside the feed; there the doubt itself has to do.
        assert believed(stepped, COUNTS) == {"n": "1"}
        stepped.put(NOTES, "a", value="a2")
        assert stepped.store.position == 2
    with place.opened() as stepped:
        assert believed(stepped) == {"a": "a2"}
        with stepped.store.read() as reader:
            assert "the store's account of itself was edited or taken away" in reader.doubts()


def test_changes_of_another_life_prove_nothing(place: Place, tmp_path: Path) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
    before = place.rows()
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="wrong life")
    other = place.rows()
    place.put_back(before, *before)
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a2")
    # Row and change have good checks, and stand at their own places.
    place.put_back(other, "notes", "changes")
    with place.opened() as stepped:
        assert believed(stepped) == {}


def test_a_number_is_never_given_again(place: Place) -> None:
    def append(stepped: Stepped) -> int:
        def change(writer: Any) -> int:
            number: int = writer.next_number(EVENTS)
            writer.put(EVENTS, number, value=text("e"))
            return number

        return stepped.run(change)

    with place.opened() as stepped:
        assert [append(stepped) for _ in range(2)] == [1, 2]
    before = place.rows()
    with place.opened() as stepped:
        assert [append(stepped) for _ in range(2)] == [3, 4]
    place.change(lambda tables: tables["events"].pop(max(tables["events"])))
    with place.opened() as stepped:
        assert append(stepped) == 5
    place.put_back(before, "meta", "events")
    with place.opened() as stepped:
        # The account is an older one, and the feed remembers.
        assert append(stepped) == 6


def test_a_change_from_nowhere_moves_nothing(place: Place) -> None:
    with place.opened() as stepped:
        stepped.put(NOTES, "a", value="a1")
    far = pack((1 << 64) - 1)
    place.change(lambda tables: tables["changes"].update({far: tables["changes"][pack(1)]}))
    with place.opened() as stepped:
        assert stepped.store.position == 1
        stepped.put(NOTES, "a", value="a2")
        assert stepped.store.position == 2
        assert believed(stepped) == {"a": "a2"}
