"""`make bench-records`: records beside the predecessor's, in process and over stdio, in one run.

Without `--full` it takes some minutes and shows the shape of things; numbers to quote come from
`--full` on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from benchmarks.records.calls import measure
from benchmarks.records.corpus import CALLS, Corpus
from benchmarks.records.stdio import Server
from benchmarks.stamp import load, stamp
from benchmarks.tables import percentile, table
from benchmarks.typed_search.peer import make_environment
from muniment.kit.clock import SystemClock, timestamp
from muniment.kit.ids import IdMaker
from muniment.kit.randomness import SystemRandomness
from muniment.memory.records.writing import Stamp
from muniment.v1 import records_pb2
from muniment.workflows.record_lines import Closing, Header, record_line

_ROOT = Path(__file__).resolve().parents[2]
_PEER = _ROOT / "benchmarks" / "records" / "peer.py"
_BIN = Path(sys.executable).parent
_QUICK_SIZES, _FULL_SIZES = (1_000,), (1_000, 10_000, 100_000)

_Times = dict[str, list[float]]


def main() -> None:
    """Measure, and print what there is to say as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="1k, 10k and 100k records")
    parser.add_argument("--sizes", type=int, nargs="*", help="these sizes instead")
    parser.add_argument("--samples", type=int, default=200)
    options = parser.parse_args()
    sizes = options.sizes or (_FULL_SIZES if options.full else _QUICK_SIZES)
    peer = make_environment(_ROOT / "build" / "bench-sibyl")
    with tempfile.TemporaryDirectory(dir=_ROOT / "build") as folder:
        facts = stamp(Path(folder))
        rows: list[list[object]] = []
        for size in sizes:
            filled = Path(folder) / f"peer-{size}"
            filled.mkdir()
            _peer("fill", peer, filled, size, 0)
            for way, both in (("in process", _in_process), ("stdio", _over_stdio)):
                place = Path(folder) / f"{way.replace(' ', '-')}-{size}"
                shutil.copytree(filled, place / "peer")
                ours, theirs = both(peer, place, size, options.samples)
                rows += _rows(way, size, ours, theirs)
                print(f"{way} {size}: load {load()}", file=sys.stderr, flush=True)
    print(f"{json.dumps(facts)}\n")
    heads = ["way", "records", "call", "ours p50", "p95", "peer p50", "p95", "p50 ratio", "p95"]
    print(table(heads, rows))
    print("\nMilliseconds; a ratio over 1 says how many times quicker ours is.")


def _rows(way: str, size: int, ours: _Times, theirs: _Times) -> list[list[object]]:
    rows: list[list[object]] = []
    for name in CALLS:
        own = [percentile(ours[name], share) for share in (0.5, 0.95)]
        other = [percentile(theirs[name], share) for share in (0.5, 0.95)]
        ratios = [b / a for a, b in zip(own, other, strict=True)]
        rows.append([way, size, name, *own, *other, *ratios])
    return rows


def _in_process(peer: Path, folder: Path, size: int, samples: int) -> tuple[_Times, _Times]:
    counts = [str(size), str(samples)]
    own = [sys.executable, "-m", "benchmarks.records.domain", str(folder / "ours"), *counts]
    theirs: _Times = json.loads(_peer("domain", peer, folder / "peer", size, samples))
    done = subprocess.run(own, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    ours: _Times = json.loads(done.stdout)
    return ours, theirs


def _peer(what: str, peer: Path, folder: Path, size: int, samples: int) -> str:
    """What the peer's process printed; it must find no store of another program."""
    done = subprocess.run(
        [str(peer), str(_PEER), what, str(folder), str(size), str(samples)],
        cwd=_ROOT,
        env=os.environ | {"HOME": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _over_stdio(peer: Path, folder: Path, size: int, samples: int) -> tuple[_Times, _Times]:
    return _own_tools(folder, size, samples), _peer_tools(peer, folder, size, samples)


def _own_tools(folder: Path, size: int, samples: int) -> _Times:
    # The peer has no index by meaning, and ours would still be filled while it is measured.
    environment = os.environ | {
        "MUNIMENT_HOME": str(folder / "home"),
        "MUNIMENT_KEY_FOLDER": str(folder / "keys"),
        "MUNIMENT_DENSE": "off",
    }

    def fill(corpus: Corpus, size: int) -> None:
        lines = folder / "records.jsonl"
        with lines.open("wb") as file:
            _write_lines(file, corpus, size)
        command = [str(_BIN / "muniment"), "records", "import", str(lines), "--json"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    server = Server([str(_BIN / "muniment-mcp"), "--profile", "vault"], environment, fill)
    try:
        return measure(server, size, samples)
    finally:
        server.close()
        subprocess.run(
            [str(_BIN / "muniment"), "down"], env=environment, check=True, capture_output=True
        )


def _write_lines(file: IO[bytes], corpus: Corpus, size: int) -> None:
    """An export, as `muniment records import` takes it."""
    now, digest = timestamp(SystemClock()), hashlib.sha256()
    stamp = Stamp(SystemClock(), IdMaker(SystemClock(), SystemRandomness()))

    def put(line: bytes) -> None:
        digest.update(line)
        file.write(line)

    put(Header("bench", "bench", "0" * 32, 0, now).to_line())
    for category, name, body in corpus.records(0, size):
        entity = records_pb2.Entity(
            id=stamp.new_id(),
            category=category,
            name=name,
            body_json=json.dumps(body),
            created_at=now,
            updated_at=now,
        )
        put(record_line(records_pb2.Record(entity=entity)))
    file.write(Closing(size, 0, digest.digest()).to_line())


def _peer_tools(peer: Path, folder: Path, size: int, samples: int) -> _Times:
    store = folder / "peer"
    environment = os.environ | {
        "HOME": str(folder),
        "SIBYL_MEMORY_DB": str(store / "memory.db"),
        "SIBYL_MEMORY_TELEMETRY": "0",
    }

    server = Server([str(peer), str(_PEER), "server", str(store)], environment, lambda *_: None)
    try:
        return measure(server, size, samples)
    finally:
        server.close()


if __name__ == "__main__":
    main()
