"""How far off the counter of tokens is, and how fast: `make bench-counting`.

Turns of 2,000 characters that neither the vocabulary nor its costs were made of, each counted by
real tokenizers. An error is the estimate over the tokenizer's count, less one, in percent: its mean
over the turns (signed), then the mean of its size. `present` are the four vocabularies of
present-day models that the costs were fitted to, on other texts: what `ERROR_PERCENT` states is
their mean size. The others were not fitted to. `before` is the estimate by classes of characters.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.counting.by_class import estimate_by_class
from benchmarks.counting.references import references
from benchmarks.counting.sources import SOURCES
from benchmarks.counting.texts import KINDS, Turn, turns
from benchmarks.counting.vocabularies import VOCABULARIES
from benchmarks.stamp import stamp
from benchmarks.tables import table
from muniment.kit.counting import ERROR_PERCENT, TOKENIZER, estimate_tokens

_TURN_CHARACTERS = 2000
_TIMED_SECONDS = 1.0
_LONG_CHARACTERS = 16 * 2**20

_ESTIMATES: tuple[tuple[str, Callable[[str], int]], ...] = (
    (TOKENIZER, estimate_tokens),
    ("before", estimate_by_class),
)


def counted(texts: Sequence[str], models: Sequence[Path]) -> dict[str, list[int]]:
    """The counts of each reference that is to be had; of the others it is said why not."""
    found = {}
    for name, counts in references(models):
        try:
            found[name] = counts(texts)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"left out: {name}, since {error}\n")
    return found


def error_rows(held: Sequence[Turn], counts: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """For each kind and estimate: the errors against each reference."""
    rows = []
    for kind in KINDS:
        places = [place for place, turn in enumerate(held) if turn.kind == kind]
        for name, estimate in _ESTIMATES:
            guesses = [estimate(held[place].text) for place in places]
            errors = {
                reference: [
                    100 * (guess / of[place] - 1)
                    for guess, place in zip(guesses, places, strict=True)
                ]
                for reference, of in counts.items()
            }
            present = [error for one in VOCABULARIES for error in errors.get(one, ())]
            stated = f"{ERROR_PERCENT[kind]:g}" if estimate is estimate_tokens else ""
            rows.append(
                [kind, str(len(places)), name, _shown(present), stated]
                + [_shown(one) for one in errors.values()]
            )
    return rows


def _shown(errors: Sequence[float]) -> str:
    if not errors:
        return "none"
    mean = sum(errors) / len(errors)
    return f"{mean:+.1f} {sum(map(abs, errors)) / len(errors):.1f}"


def speed_rows(held: Sequence[Turn]) -> list[list[object]]:
    """For each kind: MB of UTF-8 in a second, by turns; and how long a text of 16 MiB takes."""
    rows: list[list[object]] = []
    for kind in KINDS:
        texts = [turn.text for turn in held if turn.kind == kind]
        text = "\n".join(texts)
        long = (text * (_LONG_CHARACTERS // len(text) + 1)).encode()[:_LONG_CHARACTERS]
        row: list[object] = [kind]
        for _, estimate in _ESTIMATES:
            seconds = _seconds(lambda: [estimate(one) for one in texts])  # noqa: B023
            row.append(len(text.encode()) / seconds / 1e6)
            row.append(seconds / len(texts) * 1e3)
        for _, estimate in _ESTIMATES:
            row.append(_seconds(lambda: estimate(long.decode(errors="ignore"))))  # noqa: B023
        rows.append(row)
    return rows


def _seconds(work: Callable[[], object]) -> float:
    best, until = float("inf"), time.perf_counter() + _TIMED_SECONDS
    while (began := time.perf_counter()) < until:
        work()
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    """Measure, and print the tables with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, action="append", default=[], help="a GGUF file")
    options = parser.parse_args()
    held = [turn for source in SOURCES["held_out"] for turn in turns(source, _TURN_CHARACTERS)]
    print(__doc__)
    print(", ".join(f"{name} {fact}" for name, fact in stamp(Path.cwd()).items()), "\n")
    counts = counted([turn.text for turn in held], options.model)
    heads = ("kind", "turns", "estimate", "present", "stated", *counts)
    print("Errors in percent, signed and absolute\n")
    print(table(heads, error_rows(held, counts)))
    new, old = (name for name, _ in _ESTIMATES)
    heads = ("kind", f"{new} MB/s", "ms a turn", f"{old} MB/s", "ms a turn ")
    print("\nSpeed at its best; the last two are seconds for 16 MiB\n")
    print(table((*heads, f"{new} s", f"{old} s"), speed_rows(held)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
