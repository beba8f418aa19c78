"""Recall of impact on real histories: `make bench-impact`.

Of each step of a history (a release, a commit) that changes functions of the program and tests, the
code service is asked, on the tree as it was *before*, for the impact of each changed function, to a
depth of 8; the tests among the dependents, the nearest first, are held against the tests that
changed in that step. A function or test changed when the hash of its syntax did; one that came or
went is left out, and so are nested ones. *recall@k* is the share of the changed tests, or of k
where more of them changed, that is among the first k, on average over all changed functions. *grep*
ranks the tests that have the function's bare name as a word by how often they have it; *both* has
those of impact that grep has too first, then the rest of impact, then that of grep. *any order* is
what a random order of all tests would reach. A step that changes more than a quarter of all tests
is a sweep (types are added everywhere, a helper is renamed): almost any test is right then, so such
steps have rows of their own. A step may change a function and a test that have
nothing to do with each other, the more the larger it is, so recall is far below 1 for everybody.
*found* is the share of functions for which any test was named at all.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.code.served import Served, serve_code
from benchmarks.code.trees import new_folder
from benchmarks.impact.changes import Function, Reader, Step, grep, step_between
from benchmarks.impact.history import Files, commits, releases
from benchmarks.impact.sources import RELEASES
from benchmarks.stamp import stamp
from benchmarks.tables import table
from muniment.kit.errors import NotFoundError

_ROOT = Path(__file__).resolve().parents[2]
PLACE = _ROOT / "build" / "bench-impact"
_DEPTH = 8
_KS = (5, 10, 20)
_SWEEP_SHARE = 0.25
_HEADS = ("history", "steps", "functions", "ranked by", *(f"recall@{k}" for k in _KS), "found")


@dataclass
class Score:
    """Of one way of ranking."""

    recalls: dict[int, list[float]] = field(default_factory=lambda: {k: [] for k in _KS})
    found: list[bool] = field(default_factory=list)

    def add(self, ranked: Sequence[str], wanted: frozenset[str]) -> None:
        """One function's tests, as ranked and as they changed."""
        self.found.append(bool(ranked))
        for k in _KS:
            hits = len(wanted.intersection(ranked[:k]))
            self.recalls[k].append(hits / min(k, len(wanted)))

    def add_chance(self, tests: int, wanted: int) -> None:
        """What a random order would have on average."""
        self.found.append(True)
        for k in _KS:
            self.recalls[k].append(min(k, tests) * wanted / tests / min(k, wanted))


@dataclass
class Scores:
    """Of some steps."""

    steps: int = 0
    by_ranking: dict[str, Score] = field(
        default_factory=lambda: {how: Score() for how in ("impact", "grep", "both", "any order")}
    )

    def rows(self, name: str) -> list[list[object]]:
        """For the table."""
        functions = len(self.by_ranking["impact"].found)
        return [
            [name, self.steps, functions, how, *_numbers(score)]
            for how, score in self.by_ranking.items()
            if functions
        ]


async def measure(name: str, history: Iterable[tuple[str, Files]]) -> list[list[object]]:
    """Rows for one history."""
    reader, narrow, sweeping = Reader(), Scores(), Scores()
    with new_folder() as folder:
        async with serve_code(folder, watch=False) as served:
            before: Files = {}
            for moment, after in history:
                step = step_between(moment, reader, before, after)
                if step.changed and step.changed_tests:
                    await served.index()
                    is_sweep = len(step.changed_tests) > _SWEEP_SHARE * len(step.tests)
                    scores = sweeping if is_sweep else narrow
                    scores.steps += 1
                    for function in step.changed:
                        await _score(served, step, function, scores.by_ranking)
                _sync(folder, before, after)
                before = after
    return [*narrow.rows(name), *sweeping.rows(f"{name}, sweeps")]


async def _score(served: Served, step: Step, function: Function, scores: dict[str, Score]) -> None:
    names = {test.qualified_name for test in step.tests}
    try:
        impact = await served.impact(function.qualified_name, _DEPTH)
        reached = [one.definition.qualified_name for one in impact.dependents]
    except NotFoundError:
        reached = []
    by_impact = [name for name in dict.fromkeys(reached) if name in names]
    by_grep = grep(step, function)
    both = [name for name in by_impact if name in set(by_grep)]
    wanted = step.changed_tests
    scores["impact"].add(by_impact, wanted)
    scores["grep"].add(by_grep, wanted)
    scores["both"].add([*dict.fromkeys([*both, *by_impact, *by_grep])], wanted)
    scores["any order"].add_chance(len(step.tests), len(wanted))


def _numbers(score: Score) -> list[object]:
    recalls = [statistics.mean(score.recalls[k]) for k in _KS]
    return [*recalls, statistics.mean(score.found)]


def _sync(folder: Path, before: Files, after: Files) -> None:
    """Make of the folder what it was; files that stay the same are left alone."""
    for path in before.keys() - after.keys():
        (folder / path).unlink()
    for path, content in after.items():
        if before.get(path) != content:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def main() -> None:
    """Measure, and print a table with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, default=_ROOT, help="whose commits are read")
    parser.add_argument("--only", choices=["releases", "commits"])
    options = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    print(__doc__)
    print(", ".join(f"{key} {value}" for key, value in stamp(PLACE).items()))
    if options.only != "commits":
        _show(asyncio.run(measure("click, releases", releases(RELEASES, PLACE))))
    if options.only != "releases":
        own = options.repository == _ROOT
        name = "muniment" if own else options.repository.name
        _show(asyncio.run(measure(f"{name}, commits", commits(options.repository))))


def _show(rows: Sequence[Sequence[object]]) -> None:
    print(f"\n{table(_HEADS, rows)}", flush=True)


if __name__ == "__main__":
    main()
