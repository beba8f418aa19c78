"""What is read of a save file, and that nothing is concluded of what is none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.slots.save_files import read_save_file

MAGIC = 0x67677371


def _head(version: int, words: list[int]) -> bytes:
    return struct.pack(f"<III{len(words)}i", MAGIC, version, len(words), *words)


def _state(version: int, cells: int, kind: int) -> bytes:
    """One stream of cells, each of one sequence, then the head of the layers."""
    told = struct.pack("<II", 1, cells)
    told += b"".join(struct.pack("<iIi", cell, 1, 0) for cell in range(cells))
    told += struct.pack("<II", 0, 2) + (bytes(8) if version == 4 else b"")
    return told + struct.pack("<iQ", kind, 128)


def test_tokens_and_cache_type_of_an_older_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(_head(2, [5, 6, 7]) + _state(2, 3, 8))
    read = read_save_file(file)
    assert read is not None
    assert (read.tokens, read.kv_type) == ((5, 6, 7), "q8_0")


def test_tokens_behind_a_head_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(_head(4, [-1, 1, 3, 5, 6, 7, 0]) + _state(4, 3, 1))
    read = read_save_file(file)
    assert read is not None
    assert (read.tokens, read.kv_type) == ((5, 6, 7), "f16")


@pytest.mark.parametrize("state", [b"", b"\0" * 40, _state(4, 3, 999), struct.pack("<I", 2**31)])
def test_an_unknown_state_has_no_cache_type(tmp_path: Path, state: bytes) -> None:
    file = tmp_path / "a"
    file.write_bytes(_head(4, [-1, 1, 1, 5, 0]) + state)
    read = read_save_file(file)
    assert read is not None
    assert (read.tokens, read.kv_type) == ((5,), None)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"qsgg",
        b"junk" * 100,
        struct.pack("<III", MAGIC, 99, 1) + bytes(4),
        struct.pack("<III", MAGIC, 4, 2**32 - 1),
        struct.pack("<III", MAGIC, 4, 10) + bytes(8),
        _head(4, [-1, 1, 9, 5, 0]),
        _head(4, [-1, 2, 1, 5, 0]),
        _head(4, [-1, 1, 1, 5, 1]),
        _head(4, [-1]),
    ],
)
def test_what_is_not_understood_tells_nothing(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "a"
    file.write_bytes(raw)
    assert read_save_file(file) is None


@given(st.binary(max_size=200), st.integers(0, 16))
def test_no_file_is_too_strange(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, version: int
) -> None:
    file = tmp_path_factory.mktemp("files") / "a"
    file.write_bytes(struct.pack("<III", MAGIC, version, len(raw) // 8) + raw)
    read_save_file(file)
