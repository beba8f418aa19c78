"""Decides whether what was found answers the question, and if not, for which one cause.

Where little is recorded of what the question is about, a word that no record has means that the
answer is not there. Where much is recorded, as in long talks, it is likely to be there in other
words, and only names that nobody wrote keep the rows back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from muniment.memory.records.meaning import Meaning
from muniment.memory.records.questions import Denial, Question, Weight, Word
from muniment.memory.records.ranking import Ranked
from muniment.memory.records.reading import Shelf
from muniment.memory.records.support import Support
from muniment.v1 import records_pb2

__all__ = ["Decision", "Evidence", "Joint", "decide"]

COVERAGE_FLOOR = 0.6
"""Least share of the question's weight that a record and those it is linked with must have."""

ROW_FLOOR = 0.5
"""Least share of the best row's weight that another row must have."""

MUCH_RECORDED_TERMS = 1500
"""From so many terms on, in the records that have the names of the question, much is recorded."""

_DENYING_FLOOR = 0.34
"""Least share of the question's weight that a record must have that states its denial."""

_DENIED_WORDS = 3
"""How far from a denial the words stand that it denies."""

_IDEAS_PER_MISSING = 3
"""A question of more ideas than this may miss one of them, of more than twice as many two."""


@dataclass
class Decision:
    """What comes of a search."""

    code: records_pb2.VerdictCode.ValueType
    rows: list[Ranked] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    gate: records_pb2.Gate.ValueType = records_pb2.GATE_UNSPECIFIED
    below_floor: int = 0
    without_anchor: int = 0
    best_coverage: float | None = None
    forms: tuple[tuple[str, str], ...] = ()
    """Words that other ones stand for by meaning: as asked, and as found."""


@dataclass(frozen=True)
class Joint:
    """Records that are linked, and what they have together."""

    had: frozenset[int] = frozenset()
    rows: tuple[Ranked, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What there is to decide by."""

    question: Question
    supports: Sequence[Support]
    ranked: Sequence[Ranked]
    """Best first."""
    join: Callable[[], Joint]
    """Looks for the linked records that together have most of the question."""
    shelf: Shelf
    recorded_terms: float
    """How much is recorded of what the question names."""
    meaning: Meaning | None = None

    @property
    def denials(self) -> list[Denial]:
        """Those that deny what is asked for."""
        return [one for one in self.question.denials if not one.in_condition]

    @property
    def is_much(self) -> bool:
        """Whether so much is recorded that the answer is likely to be there in other words."""
        return self.recorded_terms >= MUCH_RECORDED_TERMS

    def coverage(self, had: frozenset[int]) -> float:
        """Share of the question's weight that these words have."""
        weight = sum(support.share for support in self.supports)
        return sum(self.supports[place].share for place in had) / weight if weight else 0.0


def decide(evidence: Evidence) -> Decision:
    """The one cause, and the rows where it is OK."""
    by_words = _by_words(evidence)
    if by_words.code in _KEPT_BACK and evidence.meaning is not None:
        return _by_meaning(evidence, evidence.meaning) or by_words
    return by_words


_KEPT_BACK = (
    records_pb2.VERDICT_CODE_ABSTAINED_ON,
    records_pb2.VERDICT_CODE_GATED,
    records_pb2.VERDICT_CODE_NO_MATCH,
)


def _by_words(evidence: Evidence) -> Decision:
    blocking = _blocking(evidence)
    if blocking is not None:
        return Decision(records_pb2.VERDICT_CODE_ABSTAINED_ON, tokens=[blocking.text])
    if not any(one.had for one in evidence.ranked):
        return Decision(records_pb2.VERDICT_CODE_NO_MATCH)
    if evidence.denials:
        return _denied(evidence, evidence.ranked)
    return _gated(evidence)


def _by_meaning(evidence: Evidence, meaning: Meaning) -> Decision | None:
    """Rows that say what is asked in other words."""
    answering = meaning.answering(evidence.supports, evidence.ranked, evidence.shelf)
    if not answering:
        return None
    by_key = {one.document.key: one for one in evidence.ranked}
    rows = [by_key[key] for key in meaning.near(answering) if key in by_key]
    best = max((one.coverage for one in evidence.ranked), default=None)
    decision = Decision(records_pb2.VERDICT_CODE_OK, rows, best_coverage=best)
    if evidence.denials:
        decision = _denied(evidence, rows)
    decision.forms = tuple(dict.fromkeys(form for one in answering for form in one.forms))
    return decision


def _blocking(evidence: Evidence) -> Word | None:
    """The word for which the search abstains."""
    missing = [one for one in evidence.supports if not one.is_found]
    if not missing:
        return None
    names = [one.word for one in missing if one.word.weight is Weight.NAME]
    if not any(one.is_found for one in evidence.supports):
        telling = [one.word for one in missing if one.word.weight is not Weight.LIGHT]
        return telling[0] if telling else None
    things = [one.word for one in missing if one.word.weight is Weight.THING]
    if evidence.is_much or _makes_up(evidence, len(things)):
        things = []
    return min([*names, *things], key=lambda word: word.place, default=None)


def _makes_up(evidence: Evidence, missing: int) -> bool:
    """Whether one record has so much else that a missing word is likely said in others."""
    ideas = evidence.question.ideas
    if missing > _may_miss(ideas):
        return False
    return any(
        _missed(ideas, one.had) == missing and one.coverage >= COVERAGE_FLOOR
        for one in evidence.ranked
    )


def _may_miss(ideas: Sequence[Sequence[int]]) -> int:
    return max(len(ideas) - 1, 0) // _IDEAS_PER_MISSING


def _missed(ideas: Sequence[Sequence[int]], had: frozenset[int]) -> int:
    return sum(not had.issuperset(idea) for idea in ideas)


def _answers(evidence: Evidence, had: frozenset[int], names: frozenset[int]) -> bool:
    """Whether records with these words are about what is asked."""
    ideas = evidence.question.ideas
    missed = _missed(ideas, had)
    if missed > _may_miss(ideas) or not names <= had:
        return False
    return (bool(ideas) and not missed) or evidence.coverage(had) >= COVERAGE_FLOOR


def _gated(evidence: Evidence) -> Decision:
    supports, ranked = evidence.supports, evidence.ranked
    best = max(one.coverage for one in ranked)
    candidates = [one for one in ranked if one.had or evidence.is_much]
    if evidence.is_much:
        return Decision(records_pb2.VERDICT_CODE_OK, candidates, best_coverage=best)
    names = frozenset(place for place, one in enumerate(supports) if one.word.weight is Weight.NAME)
    least = ROW_FLOOR * best
    joint, alone = Joint(), [one.had for one in ranked if _answers(evidence, one.had, names)]
    fewest = min((_missed(evidence.question.ideas, had) for had in alone), default=len(supports))
    if not alone or fewest:
        joint = evidence.join()
        best = max(best, evidence.coverage(joint.had))
        if _missed(evidence.question.ideas, joint.had) >= fewest:
            joint = Joint() if alone else joint
        if not alone and not _answers(evidence, joint.had, names):
            return _kept_back(candidates, names, names <= joint.had, best)
    first = {one.document.key for one in joint.rows}
    rows = [one for one in candidates if one.coverage >= least and one.document.key not in first]
    return Decision(
        records_pb2.VERDICT_CODE_OK,
        [*joint.rows, *rows],
        below_floor=sum(one.coverage < least for one in candidates),
        best_coverage=best,
    )


def _kept_back(
    candidates: Sequence[Ranked], names: frozenset[int], is_anchored: bool, best: float
) -> Decision:
    """No rows: by the anchor where names stand apart, else by the floor."""
    without = [one for one in candidates if not is_anchored and not names <= one.had]
    return Decision(
        records_pb2.VERDICT_CODE_GATED,
        gate=records_pb2.GATE_COVERAGE_FLOOR if is_anchored else records_pb2.GATE_ANCHOR,
        below_floor=len(candidates) - len(without),
        without_anchor=len(without),
        best_coverage=best,
    )


def _denied(evidence: Evidence, ranked: Sequence[Ranked]) -> Decision:
    """Rows where a record states the denial; none where all say the opposite."""
    denied = _denied_places(evidence.question, evidence.denials)
    stating = []
    for one in ranked:
        places = denied & one.had
        if not places or one.coverage < _DENYING_FLOOR:
            continue
        record = evidence.shelf.get(one.document.key)
        terms = frozenset(
            term
            for place in places
            for term in (*evidence.supports[place].terms, *evidence.supports[place].pieces)
        )
        if record is not None and record.denies(terms, _DENIED_WORDS):
            stating.append(one)
    best = max((one.coverage for one in ranked), default=None)
    if not stating:
        return Decision(
            records_pb2.VERDICT_CODE_NEGATION_ABSTAIN,
            tokens=[one.text for one in evidence.denials],
            best_coverage=best,
        )
    return Decision(records_pb2.VERDICT_CODE_OK, stating, best_coverage=best)


def _denied_places(question: Question, denials: Sequence[Denial]) -> frozenset[int]:
    """The words that the denials are about: the next ones, or the last before."""
    denied: set[int] = set()
    for denial in denials:
        after = [
            (word.place - denial.place, place)
            for place, word in enumerate(question.words)
            if 0 < word.place - denial.place <= _DENIED_WORDS
        ]
        before = [
            (denial.place - word.place, place)
            for place, word in enumerate(question.words)
            if 0 < denial.place - word.place <= _DENIED_WORDS
        ]
        denied.update(place for _, place in (after or sorted(before)[:1]))
    return frozenset(denied)
