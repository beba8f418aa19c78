"""What a search made of a question, and how right that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.typed_search.data import Question

__all__ = ["Answer", "Score", "score"]


@dataclass(frozen=True)
class Answer:
    """A verdict and the rows."""

    code: str
    rows: tuple[tuple[str, str | None, str], ...]
    tokens: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass
class Score:
    """How often what was right."""

    asked: int = 0
    right: int = 0
    ok: int = 0
    """Verdicts that were `ok`."""
    ok_right: int = 0
    answerable: int = 0
    wrong_answers: int = 0
    wrong_abstentions: int = 0
    none_asked: int = 0
    cause_right: int = 0
    """Of questions without an answer: those that got none for an acceptable cause."""

    @property
    def precision(self) -> float:
        """Of the rows' verdicts, those with a right row."""
        return self.ok_right / self.ok if self.ok else 1.0

    @property
    def recall(self) -> float:
        """Of the answerable questions, those that were answered right."""
        return self.ok_right / self.answerable if self.answerable else 1.0


def score(
    questions: Sequence[Question],
    ask: Callable[[Question], Answer],
    note: Callable[[Question, Answer, str], None] = lambda *_: None,
) -> tuple[dict[str, Score], Counter[tuple[str, str]], list[float]]:
    """By class and over all: the scores; the causes that were expected and given; the times."""
    scores: dict[str, Score] = {}
    causes: Counter[tuple[str, str]] = Counter()
    times = []
    for question in questions:
        answer = ask(question)
        times.append(answer.seconds)
        wrong = _judge(
            question,
            answer,
            [scores.setdefault(question.group, Score()), scores.setdefault("all", Score())],
        )
        expected = "rows" if question.relevant else "/".join(sorted(question.causes))
        causes[expected, answer.code] += 1
        note(question, answer, wrong)
    return scores, causes, times


def _judge(question: Question, answer: Answer, scores: Iterable[Score]) -> str:
    """Count the answer, and say what is wrong with it."""
    is_ok = answer.code == "ok"
    has_row = bool(question.relevant.intersection(answer.rows[:10]))
    wrong = ""
    if question.relevant:
        wrong = "" if is_ok and has_row else "wrong rows" if is_ok else "wrong abstention"
    elif is_ok:
        wrong = "wrong answer"
    elif answer.code not in question.causes:
        wrong = "other cause"
    for one in scores:
        one.asked += 1
        one.ok += is_ok
        one.answerable += bool(question.relevant)
        one.none_asked += not question.relevant
        one.ok_right += is_ok and has_row
        one.wrong_answers += wrong in ("wrong rows", "wrong answer")
        one.wrong_abstentions += wrong == "wrong abstention"
        one.cause_right += not question.relevant and not wrong
        one.right += wrong in ("", "other cause")
    return wrong
