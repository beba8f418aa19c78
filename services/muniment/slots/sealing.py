"""Sealed files: libsodium's secret stream (XChaCha20-Poly1305), block by block.

A file has a mark, the stream's head, and blocks of which the last is marked as such: one that was
cut, or whose blocks were moved, does not open. Each file has a key of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nacl import bindings
from nacl.exceptions import RuntimeError as SodiumError

from muniment.kit.errors import TamperedError
from muniment.kit.files import make_file

__all__ = ["FILE_KEY_BYTES", "seal_file", "unseal_file"]

FILE_KEY_BYTES = bindings.crypto_secretstream_xchacha20poly1305_KEYBYTES

_MARK = b"MUNSEAL1"
_BLOCK_BYTES = 1024 * 1024
_EXTRA_BYTES = bindings.crypto_secretstream_xchacha20poly1305_ABYTES
_HEAD_BYTES = bindings.crypto_secretstream_xchacha20poly1305_HEADERBYTES
_MORE = bindings.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
_LAST = bindings.crypto_secretstream_xchacha20poly1305_TAG_FINAL


def seal_file(source: Path, target: Path, key: bytes) -> None:
    """Write the file encrypted into a new one."""
    state = bindings.crypto_secretstream_xchacha20poly1305_state()
    head = bindings.crypto_secretstream_xchacha20poly1305_init_push(state, key)
    with source.open("rb") as plain, make_file(target) as sealed:
        sealed.write(_MARK + head)
        for block, is_last in _blocks(plain, _BLOCK_BYTES):
            tag = _LAST if is_last else _MORE
            sealed.write(bindings.crypto_secretstream_xchacha20poly1305_push(state, block, tag=tag))


def unseal_file(source: Path, target: Path, key: bytes) -> None:
    """Write the sealed file's plain content into a new one.

    Raises:
        TamperedError: It is not what was sealed with that key.
    """
    state = bindings.crypto_secretstream_xchacha20poly1305_state()
    with source.open("rb") as sealed, make_file(target) as plain:
        if sealed.read(len(_MARK)) != _MARK:
            raise _broken(source)
        try:
            head = sealed.read(_HEAD_BYTES)
            bindings.crypto_secretstream_xchacha20poly1305_init_pull(state, head, key)
            for block, is_last in _blocks(sealed, _BLOCK_BYTES + _EXTRA_BYTES):
                text, tag = bindings.crypto_secretstream_xchacha20poly1305_pull(state, block)
                if (tag == _LAST) != is_last:
                    raise _broken(source)
                plain.write(text)
        except (SodiumError, ValueError, TypeError) as error:
            raise _broken(source) from error


def _blocks(file: BinaryIO, size: int) -> Iterator[tuple[bytes, bool]]:
    """The file's blocks, and whether each is the last; an empty file has an empty one."""
    block = file.read(size)
    while True:
        after = file.read(size)
        yield block, not after
        if not after:
            return
        block = after


def _broken(source: Path) -> TamperedError:
    return TamperedError(
        f"{source.name} is not the file that was sealed",
        reason="SNAPSHOT_DAMAGED",
        fix="use another snapshot; `muniment slots snapshots` lists them",
    )
