"""Sealed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.kit.errors import TamperedError
from muniment.slots.sealing import FILE_KEY_BYTES, seal_file, unseal_file

KEY = bytes(range(FILE_KEY_BYTES))
BLOCK = 1024 * 1024


def _seal(folder: Path, content: bytes) -> Path:
    plain, sealed = folder / "plain", folder / "sealed"
    plain.write_bytes(content)
    seal_file(plain, sealed, KEY)
    return sealed


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_what_is_sealed_comes_back(tmp_path: Path, size: int) -> None:
    content = (b"state of a slot " * (size // 16 + 1))[:size]
    sealed = _seal(tmp_path, content)
    assert size < 16 or content[:16] not in sealed.read_bytes()
    assert sealed.stat().st_mode & 0o777 == 0o600
    unseal_file(sealed, tmp_path / "again", KEY)
    assert (tmp_path / "again").read_bytes() == content


def test_equal_files_look_different(tmp_path: Path) -> None:
    first = _seal(tmp_path, b"same").read_bytes()
    (tmp_path / "sealed").unlink()
    assert _seal(tmp_path, b"same").read_bytes() != first


@given(st.data())
def test_any_change_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sealed")
    sealed = _seal(folder, b"x" * (BLOCK + 100))
    raw = bytearray(sealed.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[at] ^= data.draw(st.integers(1, 255))
    else:
        del raw[at:]
    sealed.write_bytes(raw)
    with pytest.raises(TamperedError):
        unseal_file(sealed, folder / "again", KEY)
    assert not (folder / "again").exists()


def test_blocks_cannot_be_moved_or_left_out(tmp_path: Path) -> None:
    sealed = _seal(tmp_path, b"a" * BLOCK + b"b" * BLOCK + b"c" * BLOCK)
    raw = sealed.read_bytes()
    size = BLOCK + 17
    head, blocks = (
        raw[: -3 * size],
        [raw[-3 * size : -2 * size], raw[-2 * size : -size], raw[-size:]],
    )
    for order in ([1, 0, 2], [0, 2], [0, 1], [0, 1, 2, 2]):
        sealed.write_bytes(head + b"".join(blocks[one] for one in order))
        with pytest.raises(TamperedError):
            unseal_file(sealed, tmp_path / "again", KEY)


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    with pytest.raises(TamperedError):
        unseal_file(_seal(tmp_path, b"text"), tmp_path / "again", bytes(FILE_KEY_BYTES))
