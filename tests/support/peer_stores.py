"""Stores of the other program, made by hand: its tables as version 0.8.1 of it makes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["TENANT", "fill_peer_store", "make_peer_store", "state_of_folder"]

TENANT = "00000000-0000-0000-0000-000000000001"

_AT = "2026-01-02T03:04:05.678Z"

_SCHEMA = """
CREATE TABLE entities (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, category TEXT NOT NULL,
  name TEXT NOT NULL, status TEXT, body TEXT NOT NULL, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, UNIQUE (tenant_id, category, name));
CREATE TABLE state_documents (tenant_id TEXT NOT NULL, document_key TEXT NOT NULL,
  body TEXT NOT NULL, updated_at TEXT NOT NULL, PRIMARY KEY (tenant_id, document_key));
CREATE TABLE journal_events (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, ts TEXT NOT NULL,
  evaluated TEXT, acted TEXT, forward TEXT, extra TEXT);
CREATE TABLE reference_documents (tenant_id TEXT NOT NULL, doc_key TEXT NOT NULL, body TEXT,
  metadata TEXT, updated_at TEXT NOT NULL, PRIMARY KEY (tenant_id, doc_key));
CREATE TABLE archived_entities (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL,
  original_entity_id TEXT, category TEXT, name TEXT, body TEXT, archived_at TEXT NOT NULL,
  archive_reason TEXT);
CREATE TABLE sibyl_memory_schema_version (version INTEGER PRIMARY KEY);
"""
# The program's own tables check their JSON; without that, what is malformed can be made.


def make_peer_store(path: Path, version: int | None = 4) -> Path:
    """An empty store of that schema version."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        if version is not None:
            connection.execute("INSERT INTO sibyl_memory_schema_version VALUES (?)", (version,))
    return path


def fill_peer_store(path: Path, tenant: str = TENANT) -> None:
    """Two entities, and one record of every other kind."""
    rows: dict[str, Sequence[Sequence[Any]]] = {
        "entities": [
            (f"e1-{tenant}", tenant, "people", "ann", "active", '{"likes": "tea"}', _AT, _AT),
            (f"e2-{tenant}", tenant, "people", "bob", None, '{"n": 1.50}', _AT, _AT),
        ],
        "state_documents": [(tenant, "plan", '["a"]', _AT)],
        "reference_documents": [(tenant, "guide", "a text", None, _AT)],
        "journal_events": [(f"j1-{tenant}", tenant, _AT, None, '{"kind": "x"}', None, "{}")],
        "archived_entities": [
            (f"a1-{tenant}", tenant, "e0", "people", "eve", '{"gone": true}', _AT, "left")
        ],
    }
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)


def state_of_folder(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Content, mode and time of change of every file in the folder."""
    found = {}
    for path in sorted(folder.iterdir()):
        stat = path.stat()
        found[path.name] = (path.read_bytes(), stat.st_mode, stat.st_mtime_ns)
    return found
