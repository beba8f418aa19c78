"""Chains of hashed token blocks: what two prompts share, without their text.

Each block's hash is over the one before it and its tokens, as vLLM's prefix caching has it, so
that equal hashes at a place mean an equal prefix up to there. The first is over the model, since
tokens of two vocabularies do not compare.
"""

from __future__ import annotations

import array
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.slots.limits import CHAIN_BLOCK_TOKENS
from muniment.v1 import store_pb2

__all__ = ["TokenChain"]

_HASH_BYTES = 16
_TOKEN_BYTES = 4


@dataclass(frozen=True)
class TokenChain:
    """The chain of one prompt."""

    hashes: tuple[bytes, ...]
    last_block_tokens: int
    """In the last block; the others are full."""

    @classmethod
    def of(cls, tokens: Sequence[int], tokenizer: str) -> TokenChain:
        """The chain of these tokens of that tokenizer."""
        packed = array.array("i", tokens)
        if sys.byteorder == "big":
            packed.byteswap()
        raw, step = packed.tobytes(), CHAIN_BLOCK_TOKENS * _TOKEN_BYTES
        before, hashes = tokenizer.encode(), []
        for start in range(0, len(raw), step):
            before = hashlib.blake2b(
                before + raw[start : start + step], digest_size=_HASH_BYTES
            ).digest()
            hashes.append(before)
        rest = len(tokens) % CHAIN_BLOCK_TOKENS
        return cls(tuple(hashes), rest or (CHAIN_BLOCK_TOKENS if hashes else 0))

    @classmethod
    def from_row(cls, row: store_pb2.StoredTokenChain) -> TokenChain:
        """The chain that the row keeps."""
        raw = row.hashes
        hashes = tuple(raw[at : at + _HASH_BYTES] for at in range(0, len(raw), _HASH_BYTES))
        return cls(hashes, row.last_block_tokens)

    def to_row(self) -> store_pb2.StoredTokenChain:
        """What is kept of it."""
        return store_pb2.StoredTokenChain(
            hashes=b"".join(self.hashes), last_block_tokens=self.last_block_tokens
        )

    @property
    def head(self) -> bytes:
        """The last hash, which stands for the whole; empty for no tokens."""
        return self.hashes[-1] if self.hashes else b""

    @property
    def tokens(self) -> int:
        """How many tokens it is of."""
        return max(len(self.hashes) - 1, 0) * CHAIN_BLOCK_TOKENS + self.last_block_tokens

    def shared_tokens(self, other: TokenChain) -> int:
        """Tokens that both begin with, in whole blocks; all of them where the chains are equal."""
        if self == other:
            return self.tokens
        shared = 0
        for mine, theirs in zip(self.hashes, other.hashes, strict=False):
            if mine != theirs:
                break
            shared += 1
        return min(shared * CHAIN_BLOCK_TOKENS, self.tokens, other.tokens)
