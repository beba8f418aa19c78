"""Measures typed search on the labelled questions and on LoCoMo, beside the peer.

`--half tuning` is for work on the search; `--half held_out` is scored once, when it is done.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks.typed_search.answers import Answer, Score, score
from benchmarks.typed_search.by_meaning import ByMeaning
from benchmarks.typed_search.data import Question, Record, read_questions, read_records, read_talks
from benchmarks.typed_search.ours import Ours
from benchmarks.typed_search.peer import Peer, make_environment

Ask = Callable[[Question], Answer]

_BUILD = Path(__file__).resolve().parents[2] / "build/bench-typed-search"


def main() -> None:
    """Print the tables."""
    options = _options()
    with tempfile.TemporaryDirectory() as home:
        peer = None
        if options.peer:
            python = options.peer_python or make_environment(_BUILD)
            peer = Peer(python, Path(home))
        try:
            _labelled(options, peer)
            if options.locomo is not None:
                _locomo(options, peer)
        finally:
            if peer is not None:
                peer.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.typed_search", description=__doc__)
    parser.add_argument("--half", choices=("tuning", "held_out"), default="tuning")
    parser.add_argument("--locomo", type=Path, help="locomo10.json; not measured where not given")
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--peer-python", type=Path, help="of an environment that has the peer")
    parser.add_argument(
        "--dense", action="store_true", help="measure ours with the dense index too"
    )
    parser.add_argument("--wrong", action="store_true", help="print what was answered wrong")
    return parser.parse_args()


def _labelled(options: argparse.Namespace, peer: Peer | None) -> None:
    records, questions = read_records(), read_questions(options.half)
    print(f"{len(questions)} labelled questions ({options.half}), {len(records)} records\n")
    for name, ask in _asked(options, records, peer).items():
        wrong: list[str] = []

        def note(question: Question, answer: Answer, what: str, into: list[str] = wrong) -> None:
            if what:
                rows = [key for *_, key in answer.rows[:3]]
                into.append(f"  {what}: {question.text!r} -> {answer.code} {answer.tokens} {rows}")

        scores, causes, times = score(questions, ask, note)
        print(f"{name}: median {1000 * statistics.median(times):.1f} ms")
        _print_scores(scores)
        _print_causes(causes)
        if options.wrong:
            print("\n".join(wrong))
        print()


def _asked(options: argparse.Namespace, records: list[Record], peer: Peer | None) -> dict[str, Ask]:
    asked: dict[str, Ask] = {"muniment": Ours(records).ask}
    if options.dense:
        embedder = import_module("muniment.kit.index.embedding").MiniLM()
        asked["muniment, dense"] = Ours(records, ByMeaning(embedder, records)).ask
    if peer is not None:
        peer.store(records)
        asked["peer"] = peer.ask
    return asked


def _print_scores(scores: dict[str, Score]) -> None:
    print(
        f"  {'class':22}{'right':>9}{'wrong answers':>15}{'wrong abstentions':>19}"
        f"{'precision':>11}{'recall':>8}{'right cause':>13}"
    )
    for name in sorted(scores, key=lambda one: (one == "all", one)):
        one = scores[name]
        cause = f"{one.cause_right}/{one.none_asked}" if one.none_asked else ""
        print(
            f"  {name:22}{f'{one.right}/{one.asked}':>9}{one.wrong_answers:15}"
            f"{one.wrong_abstentions:19}{one.precision:11.2f}{one.recall:8.2f}{cause:>13}"
        )


def _print_causes(causes: Counter[tuple[str, str]]) -> None:
    print("  expected -> given")
    for (expected, given), count in sorted(causes.items()):
        print(f"    {expected} -> {given}: {count}")


def _locomo(options: argparse.Namespace, peer: Peer | None) -> None:
    asked = 0
    first: Counter[str] = Counter()
    tenth: Counter[str] = Counter()
    codes: dict[str, Counter[str]] = {}
    for talk in read_talks(options.locomo):
        asked += len(talk.questions)
        for name, ask in _asked(options, talk.records, peer).items():
            for question in talk.questions:
                answer = ask(question)
                codes.setdefault(name, Counter())[answer.code] += 1
                first[name] += bool(question.relevant.intersection(answer.rows[:1]))
                tenth[name] += bool(question.relevant.intersection(answer.rows[:10]))
    print(f"LoCoMo, {asked} questions with evidence, through the gate")
    for name in codes:
        verdicts = ", ".join(f"{code} {count}" for code, count in codes[name].most_common())
        print(
            f"  {name:16} any@1 {first[name] / asked:6.1%}  any@10 {tenth[name] / asked:6.1%}"
            f"  ({verdicts})"
        )


if __name__ == "__main__":
    main()
