"""Checks and seals: a row is good where it was written, as it was written, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kit.errors import TamperedError
from muniment.kit.store import Protection, pack
from muniment.kit.store.keys import begins_with
from muniment.kit.store.protection import key_id
from muniment.v1 import store_pb2
from tests.support.stores import protection

BOTH = pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
PAYLOAD = store_pb2.StoredPayload(value=b"the value", written_by="test").SerializeToString()
ADDRESS = pack("pin", 7)


def closed(by: Protection, position: int = 300, schema_version: int = 2) -> bytes:
    row = store_pb2.StoredRow(position=position, schema_version=schema_version)
    return by.close_row("pins", ADDRESS, row, PAYLOAD)


@BOTH
def test_a_row_opens_where_it_was_written(sealed: bool) -> None:
    one = protection(sealed=sealed)
    row, payload = one.open_row("pins", ADDRESS, closed(one))
    assert (row.position, row.schema_version) == (300, 2)
    assert (payload.value, payload.written_by) == (b"the value", "test")


@BOTH
@pytest.mark.parametrize(
    ("table", "address"),
    [("pin", ADDRESS), ("pinsx", ADDRESS), ("pins", pack("pin", 8)), ("pin", b"s" + ADDRESS)],
)
def test_a_row_is_bound_to_its_place(sealed: bool, table: str, address: bytes) -> None:
    one = protection(sealed=sealed)
    with pytest.raises(TamperedError, match=f"table {table} fails its check"):
        one.open_row(table, address, closed(one))


@BOTH
@pytest.mark.parametrize("field", ["position", "schema_version"])
def test_a_row_is_bound_to_its_time_and_shape(sealed: bool, field: str) -> None:
    one = protection(sealed=sealed)
    row = store_pb2.StoredRow.FromString(closed(one))
    setattr(row, field, getattr(row, field) + 1)
    with pytest.raises(TamperedError):
        one.open_row("pins", ADDRESS, row.SerializeToString())


@BOTH
def test_a_row_of_another_key_is_not_believed(sealed: bool) -> None:
    raw = closed(protection(sealed=sealed, key=b"o" * 32))
    with pytest.raises(TamperedError):
        protection(sealed=sealed).open_row("pins", ADDRESS, raw)
    with pytest.raises(TamperedError):
        protection(sealed=not sealed).open_row("pins", ADDRESS, closed(protection(sealed=sealed)))


@BOTH
@given(data=st.data())
def test_no_bit_can_be_changed(sealed: bool, data: st.DataObject) -> None:
    one = protection(sealed=sealed)
    raw = bytearray(closed(one))
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(TamperedError):
        one.open_row("pins", ADDRESS, bytes(raw))


@BOTH
@given(raw=st.binary(max_size=80), nonce=st.binary(max_size=30))
def test_rubbish_is_refused_and_nothing_else_happens(
    sealed: bool, raw: bytes, nonce: bytes
) -> None:
    one = protection(sealed=sealed)
    for each in (raw, store_pb2.StoredRow(payload=raw, nonce=nonce, mac=raw).SerializeToString()):
        with pytest.raises(TamperedError):
            one.open_row("pins", ADDRESS, each)


def test_a_sealed_row_shows_nothing_and_never_looks_the_same() -> None:
    one = protection(sealed=True)
    first, second = closed(one), closed(one)
    assert b"the value" not in first
    assert first != second


@BOTH
@given(
    prefix=st.lists(st.integers(0, 9) | st.text("ab\0", max_size=3), max_size=2).map(tuple),
    rest=st.lists(st.integers(0, 9) | st.binary(max_size=600), max_size=2).map(tuple),
)
def test_an_address_begins_with_that_of_its_prefix(
    sealed: bool, prefix: tuple[str | int, ...], rest: tuple[bytes | int, ...]
) -> None:
    one = protection(sealed=sealed)
    assert begins_with(one.address(*prefix, *rest), one.address(*prefix))
    assert one.address_of_packed(pack(*prefix, *rest)) == one.address(*prefix, *rest)


def test_sealed_addresses_hide_words_and_keep_numbers_in_order() -> None:
    one, other = protection(sealed=True), protection(sealed=True, key=b"o" * 32)
    assert b"secret" not in one.address("secret-project", b"secret")
    assert one.address("a") != other.address("a")
    addresses = [one.address("a", number) for number in (0, 1, 255, 256, 2**40)]
    assert addresses == sorted(addresses)


@BOTH
def test_a_text_and_its_bytes_are_two_keys(sealed: bool) -> None:
    one = protection(sealed=sealed)
    assert one.address("a") != one.address(b"a")


def test_what_a_row_adds_to_the_sum_depends_on_its_place_and_bytes() -> None:
    one = protection()
    places = [("ab", b"c", b"d"), ("a", b"bc", b"d"), ("ab", b"cd", b""), ("ab", b"c", b"e")]
    assert len({one.row_hash(*place) for place in places}) == len(places)
    assert one.row_hash("ab", b"c", b"d") != protection(key=b"o" * 32).row_hash("ab", b"c", b"d")


def test_a_key_has_a_name_that_does_not_show_it() -> None:
    assert key_id(b"k" * 32) == protection().key_id
    assert len(protection().key_id) == 16
    assert protection().key_id != protection(key=b"o" * 32).key_id
