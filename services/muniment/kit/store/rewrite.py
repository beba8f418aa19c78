"""Rewrites a store under another key: each row checked with the old and closed with the new one.

For a store that nobody has open. Keys, values, positions, provenance, feed, chain and incarnation
stay as they are, so what was derived from the store still fits it; the tables' sums are made anew,
after the old ones were found right. A store with a row too many, too few or changed is left alone.
"""

from __future__ import annotations

import hmac
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb

from muniment.kit.errors import LimitError, PreconditionError, TamperedError
from muniment.kit.files import make_file
from muniment.kit.progress import Report
from muniment.kit.store.chain import chain_hash
from muniment.kit.store.folders import NEW_LIFE, begin_building, settle, swap_in
from muniment.kit.store.keys import pack, unpack
from muniment.kit.store.protection import Protection
from muniment.kit.store.schemas import peek_schema, write_schema
from muniment.kit.store.tables import CHANGES, META, STATE_KEY
from muniment.v1 import store_pb2

__all__ = ["rewrite_copy", "rewrite_store"]

_PORTION_BYTES = 8 * 1024 * 1024
"""What one transaction writes, and so what is held in memory."""

_REPORTED_ROWS = 1000
_LEAST_MAP_BYTES = 64 * 1024 * 1024
_TABLES_LIMIT = 126
_MODULUS = 1 << 256


def rewrite_store(folder: Path, old: Protection, new: Protection, report: Report) -> None:
    """Put the store under the other protection in the store's place.

    Raises:
        PreconditionError: It is not under the old protection, or cannot be opened.
        TamperedError: It is not as it was written.
        LimitError: The copy cannot be written. The store is as it was, as after each error.
    """
    building = begin_building(folder)
    try:
        rewrite_copy(folder, building, old, new, report)
        if (folder / NEW_LIFE).exists():
            with make_file(building / NEW_LIFE):
                pass
    except BaseException:
        settle(folder)
        raise
    swap_in(folder)


def rewrite_copy(
    source: Path, target: Path, old: Protection, new: Protection, report: Report
) -> None:
    """Write the store in a folder or file, under the other protection, into an empty folder.

    Raises:
        MunimentError: As `rewrite_store`.
    """
    schema = peek_schema(source)
    if schema is None or (schema.key_id, schema.sealed) != (old.key_id, old.sealed):
        raise PreconditionError(
            f"the store in {source} is not under the key {old.key_id}",
            reason="STORE_KEY_OTHER",
            fix="bring back its key; `muniment key show-id` tells which one is here",
        )
    try:
        with closing(_open(source)) as before, closing(_open_new(target, source)) as after:
            _Rewriting(before, after, old, new, report).run(schema.version)
            after.sync(True)
    except (lmdb.Error, OSError) as error:
        raise LimitError(
            f"the store could not be rewritten: {error}",
            reason="STORE_WRITE_FAILED",
            fix="check the disk's space and health; nothing was changed",
        ) from error


def _open(path: Path) -> lmdb.Environment:
    return lmdb.open(
        str(path),
        subdir=path.is_dir(),
        max_dbs=_TABLES_LIMIT,
        readonly=True,
        lock=False,
        readahead=False,
    )


def _open_new(target: Path, source: Path) -> lmdb.Environment:
    data = source / "data.mdb" if source.is_dir() else source
    return lmdb.open(
        str(target),
        # Blinded keys come in no order, which leaves pages half full, and stand in the row too.
        map_size=max(_LEAST_MAP_BYTES, 2 * data.stat().st_size),
        max_dbs=_TABLES_LIMIT,
        mode=0o600,
        # It is synced once, when it is whole.
        sync=False,
    )


class _Rewriting:
    """One way through all tables, from the old environment to the new one."""

    def __init__(
        self,
        source: lmdb.Environment,
        target: lmdb.Environment,
        old: Protection,
        new: Protection,
        report: Report,
    ) -> None:
        self._source = source
        self._target = target
        self._old = old
        self._new = new
        self._report = report
        self._portion: list[tuple[Any, bytes, bytes]] = []
        self._portion_bytes = 0
        self._done = self._total = 0
        self._old_sums: Counter[str] = Counter()
        self._new_sums: Counter[str] = Counter()

    def run(self, schema_version: int) -> None:
        names = self._tables()
        # LMDB opens no database while a transaction is under way.
        sources = {name: self._source.open_db(name.encode(), create=False) for name in names}
        targets = {name: self._target.open_db(name.encode()) for name in names}
        with self._source.begin() as transaction:
            self._total = sum(transaction.stat(one)["entries"] for one in sources.values())
            row, state = self._state(transaction, sources[META.name])
            chain = _Chain(state)
            for name in names:
                if name == META.name:
                    continue
                for address, raw in transaction.cursor(db=sources[name]):
                    payload = self._rewrite(name, targets[name], bytes(address), bytes(raw))
                    if name == CHANGES.name:
                        chain.follow(bytes(address), payload.value)
            chain.end()
        self._check_sums(state)
        self._write_state(row, state, targets[META.name])
        self._flush()
        with self._target.begin(write=True) as transaction:
            schema = store_pb2.StoredSchema(
                version=schema_version, key_id=self._new.key_id, sealed=self._new.sealed
            )
            write_schema(transaction, targets[META.name], schema)

    def _tables(self) -> list[str]:
        with self._source.begin() as transaction:
            return [bytes(name).decode() for name, _ in transaction.cursor()]

    def _state(
        self, transaction: lmdb.Transaction, database: Any
    ) -> tuple[store_pb2.StoredRow, store_pb2.StoredState]:
        address = self._old.address(STATE_KEY)
        raw = transaction.get(address, db=database)
        if raw is None:
            raise _doubtful("the store's state is missing")
        row, payload = self._old.open_row(META.name, address, bytes(raw))
        return row, store_pb2.StoredState.FromString(payload.value)

    def _rewrite(
        self, table: str, database: Any, address: bytes, raw: bytes
    ) -> store_pb2.StoredPayload:
        row, payload = self._old.open_row(table, address, raw)
        self._old_sums[table] += self._old.row_hash(table, address, raw)
        packed = payload.key or address
        new_address, new_raw = self._closed(table, packed, row, payload)
        self._new_sums[table] += self._new.row_hash(table, new_address, new_raw)
        self._put(database, new_address, new_raw)
        self._done += 1
        if self._done % _REPORTED_ROWS == 0:
            self._report(f"table {table}", self._done, self._total)
        return payload

    def _closed(
        self,
        table: str,
        packed: bytes,
        row: store_pb2.StoredRow,
        payload: store_pb2.StoredPayload,
    ) -> tuple[bytes, bytes]:
        address = self._new.address_of_packed(packed)
        payload.key = b"" if packed == address else packed
        fresh = store_pb2.StoredRow(position=row.position, schema_version=row.schema_version)
        content = payload.SerializeToString(deterministic=True)
        return address, self._new.close_row(table, address, fresh, content)

    def _put(self, database: Any, address: bytes, raw: bytes) -> None:
        self._portion.append((database, address, raw))
        self._portion_bytes += len(address) + len(raw)
        if self._portion_bytes >= _PORTION_BYTES:
            self._flush()

    def _flush(self) -> None:
        while True:
            try:
                with self._target.begin(write=True) as transaction:
                    for database, address, raw in self._portion:
                        transaction.put(address, raw, db=database)
                break
            except lmdb.MapFullError:
                self._target.set_mapsize(2 * self._target.info()["map_size"])
        self._portion.clear()
        self._portion_bytes = 0

    def _check_sums(self, state: store_pb2.StoredState) -> None:
        for name in set(self._old_sums) | set(state.sums):
            found = (self._old_sums[name] % _MODULUS).to_bytes(32, "big")
            if not hmac.compare_digest(found, state.sums.get(name) or bytes(32)):
                raise _doubtful(f"rows of table {name} were changed from outside")

    def _write_state(
        self, row: store_pb2.StoredRow, state: store_pb2.StoredState, database: Any
    ) -> None:
        for name in list(state.sums):
            state.sums[name] = (self._new_sums[name] % _MODULUS).to_bytes(32, "big")
        payload = store_pb2.StoredPayload(
            value=state.SerializeToString(deterministic=True), written_by="store"
        )
        self._put(database, *self._closed(META.name, pack(STATE_KEY), row, payload))


class _Chain:
    """Follows the feed's hash chain from its floor to its end."""

    def __init__(self, state: store_pb2.StoredState) -> None:
        self._position = state.floor
        self._hash = state.floor_chain
        self._end = (state.position, state.chain)

    def follow(self, address: bytes, value: bytes) -> None:
        """Take the next change.

        Raises:
            TamperedError: It does not follow from the one before.
        """
        change = store_pb2.StoredChange.FromString(value)
        self._position += 1
        self._hash = chain_hash(self._hash, self._position, change)
        if unpack(address) != (self._position,) or change.chain != self._hash:
            raise _doubtful(f"the feed is broken at position {self._position}")

    def end(self) -> None:
        """Hold the feed's end against the state.

        Raises:
            TamperedError: They differ.
        """
        if (self._position, self._hash) != self._end:
            raise _doubtful("the feed's newest changes are missing")


def _doubtful(what: str) -> TamperedError:
    return TamperedError(
        f"{what}; nothing was rewritten",
        reason="STORE_IN_DOUBT",
        fix="run `muniment verify-store`, which says how to mend it",
    )
