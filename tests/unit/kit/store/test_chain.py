"""The feed's chain: every part of every change counts, but the words themselves."""

from __future__ import annotations

import hashlib

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.store.chain import CHAIN_START, chain_hash
from muniment.v1 import store_pb2


def change() -> store_pb2.StoredChange:
    return store_pb2.StoredChange(
        table="notes",
        key=b"\x02a\0",
        before=b"words",
        before_sha256=b"b" * 32,
        after_sha256=b"a" * 32,
        at=Timestamp(seconds=5, nanos=7),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table", "note"),
        ("key", b"\x02b\0"),
        ("before_sha256", b"c" * 32),
        ("after_sha256", b""),
    ],
)
def test_every_part_counts(field: str, value: object) -> None:
    other = change()
    setattr(other, field, value)
    assert chain_hash(CHAIN_START, 1, other) != chain_hash(CHAIN_START, 1, change())


def test_time_place_and_what_came_before_count() -> None:
    other = change()
    other.at.nanos += 1
    hashes = {
        chain_hash(CHAIN_START, 1, change()),
        chain_hash(CHAIN_START, 1, other),
        chain_hash(CHAIN_START, 2, change()),
        chain_hash(b"x" * 32, 1, change()),
    }
    assert len(hashes) == 4


def test_parts_do_not_run_into_each_other() -> None:
    one = store_pb2.StoredChange(table="ab", before_sha256=b"c")
    other = store_pb2.StoredChange(table="a", before_sha256=b"bc")
    assert chain_hash(CHAIN_START, 1, one) != chain_hash(CHAIN_START, 1, other)


def test_digests_in_two_fields_are_not_exchanged() -> None:
    one = store_pb2.StoredChange(before_sha256=b"c" * 32)
    other = store_pb2.StoredChange(after_sha256=b"c" * 32)
    assert chain_hash(CHAIN_START, 1, one) != chain_hash(CHAIN_START, 1, other)


def test_words_and_keys_can_be_purged_and_the_chain_holds() -> None:
    purged = change()
    purged.key_sha256 = hashlib.sha256(purged.key).digest()
    purged.ClearField("key")
    purged.ClearField("before")
    assert chain_hash(CHAIN_START, 1, purged) == chain_hash(CHAIN_START, 1, change())
