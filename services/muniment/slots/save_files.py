"""What a save file of llama-server says of itself.

Source: llama_state_seq_save_file and server_tokens of llama.cpp: a magic number, a version, the
number of tokens and the tokens, then the state. Newer servers put a head before the tokens. Of a
file that is otherwise nothing is concluded.
"""

from __future__ import annotations

import array
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

__all__ = ["SaveFile", "read_save_file"]

_MAGIC = 0x67677371
_VERSIONS = range(2, 16)
_MOST_TOKENS = 64 * 1024 * 1024
_HEAD = struct.Struct("<III")
_CELL = struct.Struct("<iI")
_LAYOUT_BYTES = {2: 0, 4: 8}
"""By version: what stands between the number of layers and the first of them."""

_NO_TOKEN, _TOKENS_VERSION = -1, 1
_MOST_LAYERS, _MOST_STREAMS, _MOST_SEQUENCES = 4096, 1024, 1024

# ggml_type of ggml.h.
_TYPES = {
    0: "f32",
    1: "f16",
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    20: "iq4_nl",
    30: "bf16",
}


@dataclass(frozen=True)
class SaveFile:
    """The head of a save file."""

    tokens: tuple[int, ...]
    kv_type: str | None
    """Type of the keys; None where the state is not of the plain kind."""


def read_save_file(path: Path) -> SaveFile | None:
    """The tokens that the file has the state of, or None where it cannot be told."""
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, version, count = _HEAD.unpack(head)
        if magic != _MAGIC or version not in _VERSIONS or count > _MOST_TOKENS:
            return None
        words = _words(file, count)
        if words is None:
            return None
        tokens = _tokens(words)
        return None if tokens is None else SaveFile(tokens, _kv_type(file, version))


def _words(file: BinaryIO, count: int) -> array.array[int] | None:
    raw = file.read(count * 4)
    if len(raw) < count * 4:
        return None
    words = array.array("i", raw)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _tokens(words: array.array[int]) -> tuple[int, ...] | None:
    if not words or words[0] != _NO_TOKEN:
        return tuple(words)
    # The head: no token, version, number of tokens; then these; then the number of media.
    if len(words) < 4 or words[1] != _TOKENS_VERSION or not 0 <= words[2] <= len(words) - 4:
        return None
    tokens, media = words[3 : 3 + words[2]], words[3 + words[2]]
    return tuple(tokens) if media == 0 and len(words) == words[2] + 4 else None


def _kv_type(file: BinaryIO, version: int) -> str | None:
    """The first layer's type of keys, where the state is that of llama_kv_cache."""
    if version not in _LAYOUT_BYTES:
        return None
    streams = _number(file)
    if not 0 < streams <= _MOST_STREAMS:
        return None
    for _ in range(streams):
        cells = _number(file)
        if cells == 0:
            continue
        if not 0 < cells <= _MOST_TOKENS:
            return None
        for _ in range(cells):
            raw = file.read(_CELL.size)
            if len(raw) < _CELL.size:
                return None
            sequences = _CELL.unpack(raw)[1]
            if sequences > _MOST_SEQUENCES:
                return None
            file.seek(4 * sequences, 1)
        is_transposed, layers = _number(file), _number(file)
        if is_transposed not in (0, 1) or not 0 < layers <= _MOST_LAYERS:
            return None
        file.seek(_LAYOUT_BYTES[version], 1)
        return _TYPES.get(_number(file))
    return None


def _number(file: BinaryIO) -> int:
    raw = file.read(4)
    return int.from_bytes(raw, "little") if len(raw) == 4 else -1
