"""`make bench-store`: commits and recall, side by side with what they are held against.

Without `--full` it takes about two minutes and shows the shape of things; numbers to quote come
from `--full` on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog

from benchmarks.stamp import load, stamp
from benchmarks.store.calls import calls
from benchmarks.store.commits import Measured, commits_in_process
from benchmarks.store.peers import tantivy_python
from benchmarks.store.setups import SHAPES, Setup, Shape
from benchmarks.store.texts import Corpus
from benchmarks.tables import table
from muniment.kit.server import THREAD_SWITCH_SECONDS

_ROOT = Path(__file__).resolve().parent.parent.parent
_TEXTS = 500
_QUICK_SETUPS = (Setup(True, False), Setup(False, False))
_FULL_SETUPS = (*_QUICK_SETUPS, Setup(True, True), Setup(False, True))
_QUICK_SHAPES = (Shape(8, 1), Shape(8, 32))
_QUICK_SIZES = ((1_000, 1), (10_000, 1))
_FULL_SIZES = ((1_000, 1), (10_000, 1), (100_000, 1), (1_000_000, 1), (100_000, 10))


def _median(runs: list[Measured]) -> Measured:
    fields = zip(*(asdict(run).values() for run in runs), strict=True)
    return Measured(*(statistics.median(values) for values in fields))


def _side_by_side(measures: list[Callable[[], Measured]], repeats: int) -> list[Measured]:
    """The medians of each, measured in turns so that all meet the same machine."""
    runs = [[measure() for measure in measures] for _ in range(repeats)]
    return [_median(list(column)) for column in zip(*runs, strict=True)]


def _commits(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    texts = list(Corpus().texts(0, _TEXTS))
    results = []
    for setup in _FULL_SETUPS if options.full else _QUICK_SETUPS:
        single = Setup(setup.late_sync, setup.sealed, batches=False)
        for shape in SHAPES if options.full else _QUICK_SHAPES:

            def measure(one: Setup, shape: Shape = shape) -> Callable[[], Measured]:
                return lambda: commits_in_process(one, shape, texts, options.seconds, folder)

            ours, theirs = _side_by_side([measure(setup), measure(single)], options.repeats)
            results.append(_result(setup, shape, ours, theirs))
            _tell(f"commits {setup.name} {shape.name}: {ours.per_second:.0f}/s")
    return results


def _calls(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    results = []
    for shape in SHAPES if options.full else _QUICK_SHAPES:
        setups = _FULL_SETUPS if options.full else _QUICK_SETUPS
        single = Setup(late_sync=True, sealed=False, batches=False)

        def measure(one: Setup | None, shape: Shape = shape) -> Callable[[], Measured]:
            return lambda: calls(one, shape, options.seconds, folder)

        empty, theirs, *ours = _side_by_side(
            [measure(None), measure(single), *map(measure, setups)], options.repeats
        )
        results.append(_result(None, shape, empty, empty))
        results.append(_result(single, shape, theirs, empty) | {"setup": "one sync per call, late"})
        results += [
            _result(setup, shape, one, empty) for setup, one in zip(setups, ours, strict=True)
        ]
        _tell(f"calls {shape.name}: empty {empty.per_second:.0f}/s")
    return results


def _result(setup: Setup | None, shape: Shape, ours: Measured, theirs: Measured) -> dict[str, Any]:
    return {
        "setup": setup.name if setup else "empty call",
        "shape": shape.name,
        **asdict(ours),
        "beside": theirs.per_second,
        "ratio": ours.per_second / theirs.per_second,
        "load": load(),
    }


def _recall(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    pythons = {"muniment": Path(sys.executable), "fts5 bm25": Path(sys.executable)}
    with_tantivy = tantivy_python()
    if with_tantivy is not None:
        pythons["tantivy"] = with_tantivy
    sizes = options.sizes or (_FULL_SIZES if options.full else _QUICK_SIZES)
    results = []
    for episodes, projects in sizes:
        for engine, python in pythons.items():
            arguments = [engine, str(episodes), str(projects), str(options.queries), str(folder)]
            done = subprocess.run(
                [str(python), "-m", "benchmarks.store.recall", *arguments],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT / "services")},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            results.append(json.loads(done.stdout) | {"load": load()})
            _tell(f"recall {engine} {episodes}: p95 {results[-1]['p95_ms']:.1f} ms")
    return results


def _commit_table(results: list[dict[str, Any]], beside: str) -> str:
    heads = ("setup", "writers × in flight", "calls/s", "p50 ms", "p95 ms", "cpu µs/call")
    return table(
        (*heads, beside, "ratio", "load"),
        [
            (
                one["setup"],
                one["shape"],
                one["per_second"],
                one["p50_ms"],
                one["p95_ms"],
                one["cpu_us"],
                one["beside"],
                one["ratio"],
                one["load"],
            )
            for one in results
        ],
    )


def _recall_table(results: list[dict[str, Any]]) -> str:
    return table(
        (
            "engine",
            "episodes",
            "projects",
            "p50 ms",
            "p95 ms",
            "cpu p50",
            "cpu p95",
            "found in 8",
            "bytes each",
            "added/s",
            "project of 5 finds its own",
            "load",
        ),
        [
            (
                one["engine"],
                f"{one['episodes']:,}",
                one["projects"],
                one["p50_ms"],
                one["p95_ms"],
                one["cpu_p50_ms"],
                one["cpu_p95_ms"],
                one["found"],
                one["bytes_each"],
                one["added_per_second"],
                "yes" if one["small_finds_own"] else "no",
                one["load"],
            )
            for one in results
        ],
    )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _size(text: str) -> tuple[int, int]:
    episodes, _, projects = text.partition("/")
    return int(episodes), int(projects or 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all setups and sizes; takes an hour")
    parser.add_argument(
        "--only", choices=("commits", "calls", "recall"), action="append", help="a part of it"
    )
    parser.add_argument("--seconds", type=float, help="how long each commit run writes")
    parser.add_argument("--repeats", type=int, help="runs of which the median counts")
    parser.add_argument("--queries", type=int, default=100, help="questions for each index")
    parser.add_argument(
        "--sizes", type=_size, nargs="+", metavar="EPISODES[/PROJECTS]", help="indexes to measure"
    )
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    options.seconds = options.seconds or (5.0 if options.full else 1.0)
    options.repeats = options.repeats or (5 if options.full else 1)
    return options


def main() -> None:
    """Measure, print Markdown, and write JSON where asked to."""
    options = _options()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))
    # As the services' processes do.
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    parts = options.only or ["commits", "calls", "recall"]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as place:
        folder = Path(place)
        results["stamp"] = stamp(folder) | {"data": Corpus().digest()}
        print("  \n".join(f"{name}: {value}" for name, value in results["stamp"].items()))
        if "commits" in parts:
            results["commits"] = _commits(options, folder)
            print("\n### In the store's process, beside one sync per call\n")
            print(_commit_table(results["commits"], "one sync per call /s"))
        if "calls" in parts:
            results["calls"] = _calls(options, folder)
            print("\n### Through RPC, beside empty calls\n")
            print(_commit_table(results["calls"], "empty calls/s"))
        if "recall" in parts:
            results["recall"] = _recall(options, folder)
            print("\n### Recall\n")
            print(_recall_table(results["recall"]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
