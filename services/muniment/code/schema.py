"""The tables of the code service's store.

All of it can be read from the disk again, so it is neither in the feed nor among the tables that
the store keeps in mind: an older row that is put back does not fit the disk, or is true.
"""

from __future__ import annotations

from muniment.kit.store import Schema, Table
from muniment.kit.stores import CODE_STORE
from muniment.v1 import store_pb2

__all__ = ["FILES", "SCHEMA", "TREES"]

TREES: Table[store_pb2.StoredCodeTree] = Table("code_trees", store_pb2.StoredCodeTree)
"""tree id → working tree."""

FILES: Table[store_pb2.StoredCodeFile] = Table("code_files", store_pb2.StoredCodeFile)
"""(tree id, path) → a file, and what its parser said."""

SCHEMA = Schema(version=CODE_STORE.version, tables=(TREES, FILES))
