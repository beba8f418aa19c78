"""A store's first facts: schema version, key and incarnation."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb
from google.protobuf.message import DecodeError

from muniment.kit.errors import PreconditionError
from muniment.kit.store.failures import require_whole
from muniment.kit.store.keys import pack
from muniment.kit.store.protection import Protection
from muniment.kit.store.tables import META
from muniment.v1 import store_pb2

__all__ = [
    "SCHEMA_ADDRESS",
    "begin_incarnation",
    "check_schema",
    "peek_schema",
    "read_schema",
    "require_key",
    "write_schema",
]

SCHEMA_ADDRESS = pack("schema")
"""Where it is in the table of the store's own facts."""

_INCARNATION_BYTES = 16


_EMPTY_LAST_PAGE = 1
"""LMDB's two first pages are its own; an environment without tables has no others."""


def read_schema(environment: lmdb.Environment, database: Any) -> store_pb2.StoredSchema | None:
    """What the store says of its shape, or None where it is new.

    The row is neither checked nor sealed: any version must be able to read it, and who changes
    it only makes the store refuse to open.

    Raises:
        PreconditionError: It cannot be read.
    """
    with environment.begin() as transaction:
        raw = transaction.get(SCHEMA_ADDRESS, db=database)
    try:
        return None if raw is None else store_pb2.StoredSchema.FromString(bytes(raw))
    except DecodeError as error:
        raise PreconditionError(
            "the store's schema row cannot be read",
            reason="SCHEMA_UNKNOWN",
            fix="restore the store from a backup with `muniment restore`",
        ) from error


def peek_schema(path: Path) -> store_pb2.StoredSchema | None:
    """What a store that nobody of this process has open says of its shape; None for no store.

    `path` is the store's folder, or the file of a copy.

    Raises:
        PreconditionError: It cannot be read.
    """
    data = path if path.is_file() else path / "data.mdb"
    if not data.exists():
        return None
    try:
        with closing(
            lmdb.open(str(path), subdir=path.is_dir(), readonly=True, lock=False, max_dbs=1)
        ) as environment:
            require_whole(path, environment)
            try:
                meta = environment.open_db(META.name.encode(), create=False)
            except lmdb.NotFoundError:
                if environment.info()["last_pgno"] > _EMPTY_LAST_PAGE:
                    raise lmdb.CorruptedError("its tables are gone") from None
                return None
            return read_schema(environment, meta)
    except lmdb.Error as error:
        raise PreconditionError(
            f"the store in {path} cannot be opened: {error}",
            reason="STORE_UNREADABLE",
            fix="check the disk; `muniment restore` brings back a backup",
        ) from error


def check_schema(
    environment: lmdb.Environment, database: Any, version: int, protection: Protection, path: Path
) -> None:
    """Make sure that the store has that version and key; a new one gets them.

    Raises:
        PreconditionError: It has another version or key, or cannot be read.
    """
    stored = read_schema(environment, database)
    if stored is None:
        expected = store_pb2.StoredSchema(
            version=version, key_id=protection.key_id, sealed=protection.sealed
        )
        with environment.begin(write=True) as transaction:
            write_schema(transaction, database, expected)
    elif stored.version != version:
        raise PreconditionError(
            f"the store in {path} has schema version {stored.version}, "
            f"this program reads version {version}",
            reason="SCHEMA_UNKNOWN",
            fix="use the version of muniment that wrote it",
        )
    else:
        require_key(stored, protection, path)


def require_key(stored: store_pb2.StoredSchema, protection: Protection, path: Path) -> None:
    """Make sure that the store was written with that key.

    Raises:
        PreconditionError: It was not.
    """
    if (stored.key_id, stored.sealed) != (protection.key_id, protection.sealed):
        raise PreconditionError(
            f"the store in {path} was written with key {stored.key_id}, "
            f"this host has {protection.key_id}",
            reason="STORE_KEY_OTHER",
            fix="bring back that key; `muniment key show-id` tells which one is here",
        )


def write_schema(
    transaction: lmdb.Transaction, database: Any, schema: store_pb2.StoredSchema
) -> None:
    """Write what the store says of its shape."""
    transaction.put(SCHEMA_ADDRESS, schema.SerializeToString(deterministic=True), db=database)


def begin_incarnation(state: store_pb2.StoredState, protection: Protection) -> None:
    """Give the store a new identity: it is new, or was brought back from a copy."""
    state.incarnation = protection.randomness.token(_INCARNATION_BYTES).hex()
