"""The code index beside what else reads code: `make bench-code`.

Trees are packages of the registries, pinned, in no git repository. *cpu* is user and system time of
all processes of a reader, *peak* their resident memory together at its highest, looked at every
20 ms (pages that they share are counted in each). *MB* are the bytes of the files of the tree's
language: MB/s is per second of the processor. Ours is the real service in a process of its own with
the processes that parse for it, from the call until the graph is resolved and stored; what it took
to start is not in *cpu*, and is in *peak*. What each makes differs: ctags finds definitions,
ast-grep here all calls, codegraph symbols and edges in a database, aider one map of 2,000 tokens,
of which *warm* has the tags of all files from its cache and ranks anew. Maps are asked for through
the service; a tree that is watched is not looked at again. *first* is the first map of that focus
and budget, of which the budgets share the ranking; *cpu* is of one map on average. An edit adds a
function to a file; it is seen when a query for its name finds it, and the time runs from before the
file is opened. Edits come one by one, or a hundred at once.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.code.edits import Seen, all_at_once, one_by_one
from benchmarks.code.peers import PEERS, Reading
from benchmarks.code.processes import Meter
from benchmarks.code.served import Served, serve_code
from benchmarks.code.trees import PLACE, TREES, Tree, new_folder, unpack, unpack_copies
from benchmarks.stamp import load, stamp
from benchmarks.tables import percentile, table

_BUDGETS = (500, 1000, 2000, 4000, 8000)
_EDITS = 100
_LARGE_FILES = 10_000
_MAP_REPEATS = 5
_FOCUS = {"django": "django/contrib/admin", "effect": "src/internal", "nautilus": "crates/model"}

_READ_HEADS = ("tree", "reader", "cpu s", "wall s", "MB/s", "peak MiB", "symbols", "edges")
_MAP_HEADS = (
    "tree",
    "focus",
    "budget",
    "tokens",
    "fill %",
    "symbols",
    "first ms",
    "warm ms",
    "cpu ms",
)
_EDIT_HEADS = ("edits", "files", "watched", "p50 ms", "p99 ms", "asked again", "of these silent")


@contextmanager
def unpacked(tree: Tree) -> Iterator[tuple[Path, float]]:
    """The tree in a folder of its own, and its megabytes of code."""
    with new_folder() as folder:
        yield folder / tree.name, unpack(tree, folder / tree.name) / 1e6


async def read_by_us(tree: Tree) -> tuple[list[list[object]], list[list[object]]]:
    """Rows of reading, and of maps."""
    with unpacked(tree) as (folder, megabytes):
        async with serve_code(folder) as served:
            rows = []
            for how in ("cold", "unchanged"):
                meter = Meter(served.pid)
                result = await served.index()
                used = meter.read()
                told = await served.describe()
                edges = told.resolved_edges + told.candidate_edges
                ours = Reading(f"muniment, {how}", used, result.state.symbols, edges)
                rows.append(_read_row(tree, ours, megabytes))
            return rows, [
                await _map_row(served, tree, budget, focus)
                for focus in ("", _FOCUS[tree.name])
                for budget in _BUDGETS
            ]


async def _map_row(served: Served, tree: Tree, budget: int, focus: str) -> list[object]:
    taken = []
    meter = Meter(served.pid)
    for _ in range(1 + _MAP_REPEATS):
        began = time.perf_counter()
        drawn = await served.draw(budget, [focus] if focus else [])
        taken.append((time.perf_counter() - began) * 1e3)
        assert drawn.tokens_used <= budget, "over its budget"
    cpu = meter.read().cpu * 1e3 / len(taken)
    fill = 100 * drawn.tokens_used / budget
    used = (drawn.tokens_used, fill, drawn.shown_symbols)
    return [tree.name, focus or "-", budget, *used, taken[0], statistics.median(taken[1:]), cpu]


def read_by_peers(tree: Tree) -> Iterator[list[object]]:
    """A row for each reading; for one that cannot be had, why."""
    for peer in PEERS:
        with unpacked(tree) as (folder, megabytes):
            try:
                for reading in peer(tree, folder):
                    yield _read_row(tree, reading, megabytes)
            except (LookupError, OSError, subprocess.SubprocessError) as error:
                name = peer.__name__.strip("_")
                print(f"{tree.name}: {name} is left out: {error}"[:300], file=sys.stderr)
                yield [tree.name, f"{name}: not to be had", *["-"] * 6]


def _read_row(tree: Tree, one: Reading, megabytes: float) -> list[object]:
    used = one.usage
    speed = megabytes / used.cpu if used.cpu else float("inf")
    taken = (used.cpu, used.wall, speed, used.peak_mib)
    return [tree.name, one.who, *taken, one.symbols, one.edges]


async def edit(tree: Tree) -> list[list[object]]:
    """Rows of edits in the tree, and in copies of it side by side."""
    rows = []
    for watch in (True, False):
        for least in (0, _LARGE_FILES):
            with new_folder() as folder:
                files = unpack_copies(tree, folder, least)
                chosen = files[:: len(files) // _EDITS][:_EDITS]
                async with serve_code(folder, watch=watch) as served:
                    await served.index()
                    await served.find("warm")
                    seen = await one_by_one(served, chosen, "edited")
                    rows.append(_edit_row("one by one", len(files), watch, seen))
                    seen = await all_at_once(served, chosen, "together")
                    rows.append(_edit_row("100 at once", len(files), watch, seen))
    return rows


def _edit_row(what: str, files: int, watch: bool, seen: Seen) -> list[object]:
    taken = [percentile(seen.seconds, share) * 1e3 for share in (0.5, 0.99)]
    return [what, files, "yes" if watch else "no", *taken, seen.late, seen.silent]


def main() -> None:
    """Measure, and print tables with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [tree.name for tree in TREES]
    parser.add_argument("--trees", nargs="+", choices=names, default=names)
    parser.add_argument("--no-peers", action="store_true", help="measure the service alone")
    parser.add_argument("--no-edits", action="store_true", help="leave the edits out")
    options = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    print(__doc__)
    print(", ".join(f"{key} {value}" for key, value in stamp(PLACE).items()))
    for tree in TREES:
        if tree.name in options.trees:
            reads, maps = asyncio.run(read_by_us(tree))
            if not options.no_peers:
                reads += read_by_peers(tree)
            _show(_READ_HEADS, reads)
            _show(_MAP_HEADS, maps)
    if not options.no_edits:
        _show(_EDIT_HEADS, asyncio.run(edit(TREES[0])))


def _show(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\nload {load()}\n\n{table(heads, rows)}", flush=True)


if __name__ == "__main__":
    main()
