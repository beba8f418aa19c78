"""Runs inside the peer's own environment: stores, asks, and prints an answer a line.

Reads one JSON a line from standard input: `{"records": […]}` begins a store of its own,
`{"query": …}` asks it. Nothing of this project is imported here.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer until the input ends."""
    from sibyl_memory_client import MemoryClient
    from sibyl_memory_client.multi_record import multi_record_search

    with tempfile.TemporaryDirectory() as folder:
        client: Any = None
        for number, line in enumerate(sys.stdin):
            message = json.loads(line)
            if "records" in message:
                client = MemoryClient.local(str(Path(folder) / f"{number}.db"))
                keys = [_write(client, record) for record in message["records"]]
                sys.stdout.write(json.dumps({"keys": keys}) + "\n")
            else:
                sys.stdout.write(json.dumps(_ask(client, multi_record_search, message)) + "\n")
            sys.stdout.flush()


def _write(client: Any, record: dict[str, Any]) -> str:
    """Store the record as the server's tools do, and give the key that it has in answers."""
    body = record["body"]
    if not isinstance(body, dict | list) and record["kind"] in ("entity", "state"):
        body = {"value": body}
    if record["kind"] == "entity":
        client.set_entity(record["category"], record["key"], body)
    elif record["kind"] == "state":
        client.set_state(record["key"], body)
    elif record["kind"] == "reference":
        client.set_reference(record["key"], body, metadata=record["more"])
    else:
        acted = {"kind": record["event_kind"], "body": body}
        return str(client.write_event(acted=acted, extra=record["more"] or None))
    return str(record["key"])


def _ask(client: Any, search: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Search as `memory_search` does without tiers."""
    started = time.perf_counter()
    if len(message["query"].strip()) < 3:
        return {"code": "no_match", "rows": [], "tokens": [], "seconds": 0.0}
    found = search(client, message["query"], limit=message["limit"])
    seconds = time.perf_counter() - started
    verdict = found.verdict
    rows = [[hit["tier"], hit["category"], hit["key"]] for hit in found]
    code = getattr(verdict.code, "value", verdict.code)
    return {"code": code, "rows": rows, "tokens": list(verdict.tokens), "seconds": seconds}


if __name__ == "__main__":
    main()
