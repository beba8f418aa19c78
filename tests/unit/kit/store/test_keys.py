"""Packed keys sort as their tuples do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.store.keys import ESCAPE, LIMIT_BYTES, KeyPart, pack, unpack

texts = st.text(max_size=12) | st.text(alphabet="\0\x01aé\U0010ffff", max_size=6)
blobs = st.binary(max_size=12) | st.binary(max_size=6).map(lambda raw: raw.replace(b"x", b"\0\xff"))
integers = st.integers(0, 2**64 - 1) | st.integers(0, 300)
PARTS: dict[type, st.SearchStrategy[KeyPart]] = {str: texts, bytes: blobs, int: integers}

keys = st.lists(texts | blobs | integers, max_size=5).map(tuple)


@st.composite
def pairs_of_one_shape(
    draw: st.DrawFn,
) -> tuple[tuple[KeyPart, ...], tuple[KeyPart, ...]]:
    """Two keys whose parts have the same types; the second may go on where the first ends."""
    shape = draw(st.lists(st.sampled_from([str, bytes, int]), min_size=1, max_size=4))
    first = tuple(draw(PARTS[kind]) for kind in shape)
    shared = draw(st.integers(0, len(shape)))
    rest = tuple(draw(PARTS[kind]) for kind in shape[shared:])
    return first[: draw(st.integers(1, len(shape)))], first[:shared] + rest


@given(pairs_of_one_shape())
def test_they_sort_as_their_tuples_do(
    pair: tuple[tuple[KeyPart, ...], tuple[KeyPart, ...]],
) -> None:
    one, other = pair
    # UTF-8 sorts by code points, as Python's text does.
    assert (pack(*one) < pack(*other)) == (one < other)
    assert (pack(*one) == pack(*other)) == (one == other)


@settings(max_examples=50)
@given(keys)
def test_they_can_be_read_back(key: tuple[KeyPart, ...]) -> None:
    read = unpack(pack(*key))
    assert read == key
    assert [type(part) for part in read] == [type(part) for part in key]


@given(keys, keys)
def test_what_begins_with_a_prefix_has_that_prefix(
    key: tuple[KeyPart, ...], prefix: tuple[KeyPart, ...]
) -> None:
    for wanted in (prefix, key[: len(key) // 2]):
        packed, start = pack(*key), pack(*wanted)
        begins = packed.startswith(start) and not packed.startswith(ESCAPE, len(start))
        assert begins == (key[: len(wanted)] == wanted)


@pytest.mark.parametrize("number", [-1, 2**64, -(2**70)])
def test_integers_have_a_range(number: int) -> None:
    with pytest.raises(ValueError, match=str(number)):
        pack("a", number)
    assert unpack(pack(0, 2**64 - 1)) == (0, 2**64 - 1)


def test_keys_have_a_longest_length() -> None:
    longest = "x" * (LIMIT_BYTES - 2)
    assert len(pack(longest)) == LIMIT_BYTES
    with pytest.raises(ValueError, match="512 of 511 bytes"):
        pack(longest + "x")
    # A zero takes two bytes.
    with pytest.raises(ValueError, match="of 511 bytes"):
        pack("\0" * 300)


@pytest.mark.parametrize(
    "key",
    [
        b"\0",
        b"\x04abc\0",
        b"\x02abc",
        b"\x02abc\0\xff",
        b"\x01",
        b"\x03\0\0",
        b"\x02\xff\xfe\0",
        pack("a", 1)[:-1],
        pack("a") + b"x",
    ],
)
def test_bytes_that_are_no_key_are_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(key)


@settings(max_examples=50)
@given(st.binary(max_size=30))
def test_no_bytes_are_a_surprise(key: bytes) -> None:
    try:
        parts = unpack(key)
    except ValueError:
        return
    assert unpack(pack(*parts)) == parts


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        pack("\ud800")
