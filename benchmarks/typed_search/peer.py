"""The peer: the predecessor's client, in an environment of its own, fed the same records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.typed_search.answers import Answer
from benchmarks.typed_search.data import Question, Record

__all__ = ["PINS", "Peer", "make_environment"]

PINS = ("sibyl-memory-client==0.8.1", "sibyl-memory-hermes==0.4.1", "sibyl-memory-mcp==0.2.1")
"""The newest that run without an account."""

_PROCESS = Path(__file__).with_name("peer_process.py")


def make_environment(folder: Path) -> Path:
    """Its Python, installed into the folder where it is not yet."""
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINS], check=True)
        (folder / "installed").touch()
    return python


class Peer:
    """A process of the peer that answers for one store after the other."""

    def __init__(self, python: Path, home: Path) -> None:
        """`home` is what it takes for the home folder: it must not find another store there."""
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            [str(python), str(_PROCESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self._keys: dict[tuple[str, str], str] = {}

    def store(self, records: list[Record]) -> None:
        """Begin anew with these records."""
        sent = [
            {
                "kind": record.kind,
                "category": record.category,
                "key": record.key,
                "body": record.body,
                "more": record.more,
                "event_kind": record.event_kind,
            }
            for record in records
        ]
        keys = self._call({"records": sent})["keys"]
        self._keys = {
            (record.kind, key): record.key for record, key in zip(records, keys, strict=True)
        }

    def ask(self, question: Question) -> Answer:
        """Search as `memory_search` does without tiers."""
        found = self._call({"query": question.text, "limit": 10})
        rows = tuple(
            (kind, category, self._keys.get((kind, key), key))
            for kind, category, key in found["rows"]
        )
        return Answer(found["code"], rows, tuple(found["tokens"]), found["seconds"])

    def close(self) -> None:
        """End its process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(message) + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer
