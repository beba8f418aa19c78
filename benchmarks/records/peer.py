"""Runs in the peer's own environment: `peer.py fill|domain|server FOLDER SIZE SAMPLES`.

What is measured stands in the folder already: filling takes long, and is done once for all.

Its cap is lifted in the process, since a store of the sizes that are measured would be over it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.records.calls import measure
from benchmarks.records.corpus import Corpus

_NO_CAP = 1 << 60


class _Client:
    """The peer's client."""

    def __init__(self, path: Path) -> None:
        from sibyl_memory_client import MemoryClient

        self._client = MemoryClient.local(str(path))

    def fill(self, corpus: Corpus, size: int) -> None:
        """Nothing: the records are there."""

    def make(self, corpus: Corpus, size: int) -> None:
        """Write the first so many records."""
        for category, name, body in corpus.records(0, size):
            self._client.set_entity(category, name, body)

    def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Make the call that the tool of that name makes."""
        from sibyl_memory_client.multi_record import multi_record_search

        client = self._client
        match name:
            case "memory_remember":
                return client.set_entity(*arguments.values())
            case "memory_recall":
                return client.get_entity(*arguments.values())
            case "memory_search":
                return multi_record_search(client, arguments["query"], limit=10)
            case "memory_list":
                return client.list_entities(limit=arguments["limit"])
            case _:
                return client.archive_entity(*arguments.values())


def main() -> None:
    """Measure the client, fill a store for the server, or be the server."""
    import sibyl_memory_client._capcheck as cap

    (cap.CapGate.__init__.__kwdefaults__ or {})["cap_bytes"] = _NO_CAP
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "server":
        from sibyl_memory_mcp.server import run_stdio

        run_stdio()
        return
    client = _Client(folder / "memory.db")
    size, samples = int(sys.argv[3]), int(sys.argv[4])
    if what == "fill":
        client.make(Corpus(), size)
    else:
        print(json.dumps(measure(client, size, samples)))


if __name__ == "__main__":
    main()
