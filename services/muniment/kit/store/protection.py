"""What makes a row the store's own: a keyed check, or in a sealed store encryption.

A row is bound to its table, key, position and schema version, so it cannot be edited, moved to
another place or pass for a row of another time without the key. A plain store carries a keyed
BLAKE2b (RFC 7693); a sealed one XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha) and keys whose texts
are replaced by a keyed digest. Keys of each purpose are derived as libsodium's crypto_kdf does.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from functools import cached_property

from google.protobuf.message import DecodeError
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from nacl.exceptions import CryptoError

from muniment.kit.errors import TamperedError
from muniment.kit.randomness import Randomness
from muniment.kit.store.keys import KeyPart, pack, shorten, unpack
from muniment.v1 import store_pb2

__all__ = ["KEY_BYTES", "Protection", "key_id"]

KEY_BYTES = 32
"""Length of a store's key."""

_NONCE_BYTES = 24
_BLIND_BYTES = 16
_CONTEXT = b"muniment"


def key_id(key: bytes) -> str:
    """A name of the key that tells nothing about it: 16 hex digits."""
    return hashlib.blake2b(b"id", key=key, digest_size=8, person=_CONTEXT).hexdigest()


@dataclass(frozen=True)
class Protection:
    """How the rows of one store are checked or sealed, and its keys written."""

    key: bytes = field(repr=False)
    sealed: bool
    randomness: Randomness

    @property
    def key_id(self) -> str:
        """The key's name."""
        return key_id(self.key)

    @cached_property
    def _row_key(self) -> bytes:
        return self._derive(b"seal" if self.sealed else b"check")

    @cached_property
    def _sum_key(self) -> bytes:
        return self._derive(b"sum")

    @cached_property
    def _blind_key(self) -> bytes:
        return self._derive(b"blind")

    def _derive(self, purpose: bytes) -> bytes:
        return hashlib.blake2b(
            b"", key=self.key, digest_size=KEY_BYTES, salt=purpose, person=_CONTEXT
        ).digest()

    def address(self, *parts: KeyPart) -> bytes:
        """LMDB's key for the parts. Those of a prefix are the beginning of a whole key's."""
        return shorten(pack(*map(self._blind, parts)) if self.sealed else pack(*parts))

    def address_of_packed(self, packed: bytes) -> bytes:
        """LMDB's key for parts that `pack` made bytes of."""
        return self.address(*unpack(packed)) if self.sealed else shorten(packed)

    def _blind(self, part: KeyPart) -> KeyPart:
        if isinstance(part, int):
            return part
        kind, raw = (b"text", part.encode()) if isinstance(part, str) else (b"bytes", part)
        return hashlib.blake2b(
            raw, key=self._blind_key, digest_size=_BLIND_BYTES, person=kind
        ).digest()

    def close_row(
        self, table: str, address: bytes, row: store_pb2.StoredRow, payload: bytes
    ) -> bytes:
        """The row with the payload under its check or seal, serialized."""
        bound = _bound(table, address, row)
        if self.sealed:
            row.nonce = self.randomness.token(_NONCE_BYTES)
            row.payload = crypto_aead_xchacha20poly1305_ietf_encrypt(
                payload, bound, row.nonce, self._row_key
            )
        else:
            row.payload = payload
            row.mac = self._mac(bound, payload)
        return row.SerializeToString()

    def open_row(
        self, table: str, address: bytes, raw: bytes
    ) -> tuple[store_pb2.StoredRow, store_pb2.StoredPayload]:
        """The row and what it holds.

        Raises:
            TamperedError: It was not written by who holds the key, not there, or not so.
        """
        try:
            row = store_pb2.StoredRow.FromString(raw)
            payload = self._open(_bound(table, address, row), row)
            return row, store_pb2.StoredPayload.FromString(payload)
        except (DecodeError, CryptoError, ValueError) as error:
            raise tampered(table, address) from error

    def _open(self, bound: bytes, row: store_pb2.StoredRow) -> bytes:
        if self.sealed:
            return crypto_aead_xchacha20poly1305_ietf_decrypt(
                row.payload, bound, row.nonce, self._row_key
            )
        if not hmac.compare_digest(self._mac(bound, row.payload), row.mac):
            raise CryptoError("the check fails")
        return row.payload

    @cached_property
    def _begun_mac(self) -> hashlib.blake2b:
        return hashlib.blake2b(key=self._row_key, digest_size=32)

    @cached_property
    def _begun_sum(self) -> hashlib.blake2b:
        return hashlib.blake2b(key=self._sum_key, digest_size=32)

    def _mac(self, bound: bytes, payload: bytes) -> bytes:
        # A copy costs half of what it does to begin with a key.
        mac = self._begun_mac.copy()
        mac.update(bound)
        mac.update(payload)
        return mac.digest()

    def row_hash(self, table: str, address: bytes, raw: bytes) -> int:
        """What the row adds to its table's sum."""
        name = table.encode()
        head = struct.pack(">II", len(name), len(address)) + name + address
        digest = self._begun_sum.copy()
        digest.update(head)
        digest.update(raw)
        return int.from_bytes(digest.digest(), "big")


def tampered(table: str, address: bytes) -> TamperedError:
    """The error for a row that cannot be believed."""
    return TamperedError(
        f"a row of table {table} fails its check ({address.hex()[:24]})",
        reason="ROW_TAMPERED",
        fix="run `muniment verify-store`",
    )


def _bound(table: str, address: bytes, row: store_pb2.StoredRow) -> bytes:
    """What the check binds the payload to, without ambiguity."""
    name = table.encode()
    lengths = struct.pack(">IIQI", len(name), len(address), row.position, row.schema_version)
    return lengths + name + address
