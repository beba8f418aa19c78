"""The tables of the slots service's store."""

from __future__ import annotations

from muniment.kit.store import Schema, Table
from muniment.kit.stores import SLOTS_STORE
from muniment.v1 import store_pb2

__all__ = ["CHAINS", "PROBES", "SCHEMA", "SNAPSHOTS"]

SNAPSHOTS: Table[store_pb2.StoredSnapshot] = Table(
    "snapshots", store_pb2.StoredSnapshot, in_feed=True, mutable=True
)
"""snapshot id → snapshot."""

CHAINS: Table[store_pb2.StoredTokenChain] = Table(
    "token_chains", store_pb2.StoredTokenChain, mutable=True
)
"""snapshot id → the hashed blocks of its tokens, where these are known."""

PROBES: Table[store_pb2.StoredProbe] = Table("probes", store_pb2.StoredProbe, mutable=True)
"""name of a server → what was found out about it."""

SCHEMA = Schema(version=SLOTS_STORE.version, tables=(SNAPSHOTS, CHAINS, PROBES))
