"""Reads and changes a store as a stranger would: with plain LMDB, and without its key.

    python tests/support/tamper.py dump STORE           prints all rows as JSON
    python tests/support/tamper.py apply STORE < JSON   applies operations to them

Tables, keys and rows are hex digits. An operation is [table, key, row], with null to take it away.
"""

from __future__ import annotations

import json
import sys

import lmdb

Rows = dict[str, dict[str, str]]
Operation = tuple[str, str, str | None]

_TABLES_LIMIT = 64
_MAP_BYTES = 1024**3


def dump(folder: str) -> Rows:
    """All rows of all tables."""
    with lmdb.open(folder, max_dbs=_TABLES_LIMIT, map_size=_MAP_BYTES) as environment:
        with environment.begin() as transaction:
            names = [bytes(name) for name, _ in transaction.cursor()]
        tables = {name: environment.open_db(name, create=False) for name in names}
        with environment.begin() as transaction:
            return {
                name.decode(): {
                    bytes(key).hex(): bytes(row).hex() for key, row in transaction.cursor(db=table)
                }
                for name, table in tables.items()
            }


def apply(folder: str, operations: list[Operation]) -> None:
    """Change rows, all in one transaction."""
    with lmdb.open(folder, max_dbs=_TABLES_LIMIT, map_size=_MAP_BYTES) as environment:
        names = {name for name, _, _ in operations}
        tables = {name: environment.open_db(name.encode(), create=False) for name in names}
        with environment.begin(write=True) as transaction:
            for name, key, row in operations:
                if row is None:
                    transaction.delete(bytes.fromhex(key), db=tables[name])
                else:
                    transaction.put(bytes.fromhex(key), bytes.fromhex(row), db=tables[name])


if __name__ == "__main__":
    if sys.argv[1] == "dump":
        json.dump(dump(sys.argv[2]), sys.stdout)
    else:
        apply(sys.argv[2], json.load(sys.stdin))
