"""Rows that are purged leave digests: in the feed, whose chain holds, and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.store import Reader, Writer, pack, read_feed
from muniment.kit.store.chain import CHAIN_START, chain_hash
from muniment.kit.store.tables import CHANGES
from muniment.v1 import store_pb2
from tests.support.stores import EVENTS, LOOSE, NOTES, Stepped, demand_sound, text


@pytest.fixture(params=[False, True], ids=["plain", "sealed"])
def stepped(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store", sealed=request.param)
    yield opened
    opened.close()


def feed(stepped: Stepped) -> list[store_pb2.StoredChange]:
    return [change for _, change in stepped.look(lambda reader: read_feed(reader, 0, 99)).changes]


def demand_chained(stepped: Stepped) -> None:
    chain = CHAIN_START
    for position, change in enumerate(feed(stepped), 1):
        chain = chain_hash(chain, position, change)
        assert change.chain == chain
    assert stepped.look(Reader.state).chain == chain


def test_a_purged_row_leaves_its_digest_and_not_its_value(stepped: Stepped) -> None:
    stepped.put(EVENTS, 1, value="secret")
    stepped.run(lambda writer: writer.purge(EVENTS, 1))
    *_, change = feed(stepped)
    assert not change.HasField("before")
    assert change.before_sha256 == hashlib.sha256(text("secret").SerializeToString()).digest()
    assert not change.HasField("after_sha256")
    assert stepped.look(lambda reader: reader.get(EVENTS, 1)) is None
    demand_sound(stepped.store)
    demand_chained(stepped)


def test_purging_what_is_not_there_is_nothing(stepped: Stepped) -> None:
    before = stepped.store.position
    stepped.run(lambda writer: writer.purge(NOTES, "none"))
    stepped.run(lambda writer: writer.purge(LOOSE, "none"))
    assert stepped.store.position == before


@pytest.mark.parametrize("with_key", [False, True])
def test_a_purged_change_keeps_its_place_in_the_chain(stepped: Stepped, with_key: bool) -> None:
    stepped.put(NOTES, "who", value="secret")
    stepped.put(NOTES, "who", value="other")
    stepped.put(NOTES, "else", value="third")

    def purge(writer: Writer) -> None:
        for position in (1, 2, 99):
            writer.purge_change(position, with_key=with_key)
            # Again is nothing more.
            writer.purge_change(position, with_key=with_key)

    before = stepped.store.position
    stepped.run(purge)
    assert stepped.store.position == before
    first, second, third = feed(stepped)
    for change in (first, second):
        assert not change.HasField("before")
        assert change.key == (b"" if with_key else pack("who"))
        assert change.key_sha256 == (hashlib.sha256(pack("who")).digest() if with_key else b"")
    assert third.key == pack("else")
    demand_sound(stepped.store)
    demand_chained(stepped)
    assert stepped.rows(NOTES) == {("who",): "other", ("else",): "third"}


def test_the_newest_number_is_known_when_its_row_is_purged(stepped: Stepped) -> None:
    def add(writer: Writer) -> int:
        number = writer.next_number(EVENTS)
        writer.put(EVENTS, number, value=text("x"))
        return number

    stepped.put(EVENTS, 7, value="from elsewhere")
    assert stepped.run(lambda writer: writer.newest_number(EVENTS)) == 7
    stepped.run(lambda writer: writer.purge(EVENTS, 7))
    assert stepped.run(add) == 8
    stepped.run(lambda writer: writer.purge(EVENTS, 8))
    assert stepped.run(lambda writer: writer.newest_number(EVENTS)) == 8
    assert stepped.look(lambda reader: reader.count(CHANGES)) == 4
