"""Keys: order, prefixes, round trips, and what becomes of long ones."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kit.store.keys import (
    KEY_LIMIT_BYTES,
    KeyPart,
    as_number,
    begins_with,
    pack,
    shorten,
    unpack,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text("\0\xffa", max_size=4)
PARTS = st.integers(0, 2**64 - 1) | TEXTS | st.binary(max_size=12)
KEYS = st.lists(PARTS, max_size=4).map(tuple)
LONG_TEXTS = st.integers(400, 700).flatmap(
    lambda size: st.text("ab\0", min_size=3, max_size=5).map(lambda end: "x" * size + end)
)


def ranked(key: tuple[KeyPart, ...]) -> list[tuple[int, KeyPart]]:
    """A key as Python sorts it: bytes, then texts, then numbers."""
    return [((bytes, str, int).index(type(part)), part) for part in key]


@given(KEYS)
def test_a_key_comes_back(key: tuple[KeyPart, ...]) -> None:
    read = unpack(pack(*key))
    assert read == key
    assert [type(part) for part in read] == [type(part) for part in key]


@given(KEYS, KEYS)
def test_bytes_sort_as_the_tuples(one: tuple[KeyPart, ...], other: tuple[KeyPart, ...]) -> None:
    assert (pack(*one) < pack(*other)) == (ranked(one) < ranked(other))
    assert (pack(*one) == pack(*other)) == (one == other)


@given(KEYS, KEYS)
def test_a_prefix_is_of_whole_parts(prefix: tuple[KeyPart, ...], rest: tuple[KeyPart, ...]) -> None:
    assert begins_with(pack(*prefix, *rest), pack(*prefix))
    assert begins_with(pack(*rest), pack(*prefix)) == (rest[: len(prefix)] == prefix)


def test_a_part_with_a_zero_is_not_under_its_beginning() -> None:
    assert pack("a\0b").startswith(pack("a"))
    assert not begins_with(pack("a\0b", 1), pack("a"))
    assert begins_with(pack("a", "\xff"), pack("a"))


@given(st.binary(max_size=40))
def test_bytes_that_are_no_key_are_refused(raw: bytes) -> None:
    try:
        key = unpack(raw)
    except ValueError:
        return
    assert pack(*key) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"\0",
        b"\x01",
        b"\x04",
        b"\x04abc\0",
        b"\x03\0\0",
        b"\x02a",
        b"\x02a\0\xff",
        b"\x02\xff\0",
        pack("a", 1)[:-1],
        pack("a") + b"x",
    ],
)
def test_broken_keys_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"key|utf-8"):
        unpack(raw)


@pytest.mark.parametrize("number", [-1, 2**64, -(2**70)])
def test_numbers_are_unsigned_and_of_64_bits(number: int) -> None:
    with pytest.raises(ValueError, match=f"{number} is not an unsigned 64-bit"):
        pack("a", number)
    assert unpack(pack(0, 2**64 - 1)) == (0, 2**64 - 1)


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        pack("\ud800")


@given(st.lists(PARTS, max_size=2).map(tuple))
def test_only_a_number_alone_is_a_number(key: tuple[KeyPart, ...]) -> None:
    is_number = len(key) == 1 and isinstance(key[0], int)
    assert as_number(pack(*key)) == (key[0] if is_number else None)


@given(st.lists(LONG_TEXTS, min_size=2, max_size=2, unique=True), st.binary(max_size=8))
def test_long_keys_stay_apart(texts: list[str], more: bytes) -> None:
    one, other = (shorten(pack("p", each, more)) for each in texts)
    assert one != other
    assert max(len(one), len(other)) <= KEY_LIMIT_BYTES


@given(LONG_TEXTS)
def test_a_long_key_is_under_its_prefix(long: str) -> None:
    key = shorten(pack("project", 7, long))
    assert begins_with(key, pack("project", 7))
    assert not begins_with(key, pack("project", 8))


@pytest.mark.parametrize("size", range(KEY_LIMIT_BYTES - 4, KEY_LIMIT_BYTES + 2))
def test_a_shortened_key_is_never_taken_for_a_whole_one(size: int) -> None:
    packed = pack(b"x" * (size - 2))
    assert len(packed) == size
    assert len(shorten(packed)) == min(size, KEY_LIMIT_BYTES)
    assert (shorten(packed) == packed) == (size < KEY_LIMIT_BYTES)


def test_who_knows_the_digest_makes_no_second_key_of_the_same_address() -> None:
    long = shorten(pack(b"x" * 600))
    pretender = long[:-1].replace(b"\0", b"\0\xff")
    assert shorten(pretender + b"\0") != long
    assert long.endswith(hashlib.sha256(pack(b"x" * 600)).digest())


def test_under_a_prefix_as_long_as_what_is_kept_nothing_is_hidden() -> None:
    kept = KEY_LIMIT_BYTES - 32
    start = pack("x" * (kept - 2))
    assert len(start) == kept
    for number in range(300):
        assert begins_with(shorten(pack("x" * (kept - 2), "y" * 40, number)), start)
