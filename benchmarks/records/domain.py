"""The domain of records in this process: a tenant's store and indexes, without gRPC."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from benchmarks.records.calls import measure
from benchmarks.records.corpus import Corpus
from muniment.kit.clock import SystemClock
from muniment.kit.home_key import HomeKey
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store import Store, StoreOptions, Writer
from muniment.memory.records.archive import forget
from muniment.memory.records.bodies import compact, kept_body
from muniment.memory.records.entities import Wanted, known_entity, list_entities, remember
from muniment.memory.records.schema import SCHEMA
from muniment.memory.records.searching import search
from muniment.memory.records.tenants import Tenants
from muniment.memory.records.totals import Cap
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2

__all__ = ["Domain"]

_MAP_BYTES = 16 * 1024**3
_FILLED_TOGETHER = 500


class Domain:
    """One tenant's records."""

    def __init__(self, folder: Path) -> None:
        randomness = SystemRandomness()
        key = HomeKey.make(randomness, sealed=False)

        def open_store(path: Path) -> Store:
            options = StoreOptions(map_limit_bytes=_MAP_BYTES)
            return Store(path, SCHEMA, key.protection(randomness), options)

        self._tenants = Tenants(folder, open_store)
        self._present = self._tenants.of("bench")
        self._stamp = Stamp(SystemClock(), IdMaker(SystemClock(), randomness))

    def fill(self, corpus: Corpus, size: int) -> None:
        """Have the first so many records."""
        for start in range(0, size, _FILLED_TOGETHER):
            records = list(corpus.records(start, min(size, start + _FILLED_TOGETHER)))

            def change(writer: Writer, records: list[Any] = records) -> None:
                for category, name, body in records:
                    remember(writer, Cap(None), self._stamp, _wanted(category, name, body))

            self._present.store.write(change).result()

    def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        """Do what the service does for the tool of that name."""
        store = self._present.store
        if name == "memory_remember":
            wanted = _wanted(**arguments)
            return store.write(
                lambda writer: remember(writer, Cap(None), self._stamp, wanted)
            ).result()
        if name == "memory_forget":
            names = [arguments["category"]], [arguments["name"]]
            return store.write(lambda writer: forget(writer, self._stamp, *names, None)).result()
        with store.read() as reader:
            if name == "memory_recall":
                found = known_entity(reader, [arguments["category"]], [arguments["name"]])
                return json.loads(found.entity.body_json)
            if name == "memory_list":
                wanted_page = records_pb2.ListEntitiesRequest(limit=arguments["limit"])
                return list_entities(reader, wanted_page)
            request = records_pb2.SearchRecordsRequest(query=arguments["query"], limit=10)
            return search(reader, self._present, request)

    def close(self) -> None:
        """Close the store."""
        self._tenants.close()


def _wanted(category: str, name: str, body: Mapping[str, Any]) -> Wanted:
    return Wanted(category, name, kept_body("body", compact("body", body)), None)


def main() -> None:
    """`domain.py FOLDER SIZE SAMPLES`: measure, and print milliseconds by call as JSON."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    domain = Domain(Path(sys.argv[1]))
    print(json.dumps(measure(domain, int(sys.argv[2]), int(sys.argv[3]))))
    domain.close()


if __name__ == "__main__":
    main()
