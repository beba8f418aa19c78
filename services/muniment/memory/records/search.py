"""Search over records with a typed verdict: rows, or exactly one cause why there are none."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from muniment.kit.index.analysis import stem
from muniment.kit.index.gathering import Gathering
from muniment.kit.index.lexical import LexicalIndex, Within, whole_value
from muniment.memory.records.gate import Decision, Evidence, Joint, decide
from muniment.memory.records.limits import SEARCH_DEFAULT_HITS, SEARCH_LIMIT_HITS
from muniment.memory.records.meaning import Dense, Meaning, Near, is_understood
from muniment.memory.records.naming import SEARCHED_KINDS, partition_of, split_key
from muniment.memory.records.questions import Question, Weight, understand
from muniment.memory.records.ranking import Ranked, Ranking
from muniment.memory.records.reading import Found, Load, ReadRecord, Shelf
from muniment.memory.records.snippets import snippet
from muniment.memory.records.support import Support, supports_of
from muniment.memory.records.texts import ASKS, joined
from muniment.memory.records.words import folded
from muniment.v1 import records_pb2

__all__ = ["Dense", "Found", "Near", "search_records"]

QUERY_LEAST_CHARACTERS = 3
"""A shorter query finds nothing: the tools' contract says so."""

_CANDIDATES = 64
_BASES = 6
"""Records whose links are followed, where no record answers alone."""
_LINK_VALUES = 24
_LINKED = 48
_LINK_LIMIT_RECORDS = 30
"""A value that more records have links nothing."""
_WORDS = re.compile(r"\w+")
_ABSTENTIONS = (
    records_pb2.VERDICT_CODE_ABSTAINED_ON,
    records_pb2.VERDICT_CODE_NEGATION_ABSTAIN,
)
_VERDICT_WORDS = 8
_VERDICT_WORD_CHARACTERS = 64


def search_records(
    index: LexicalIndex,
    load: Load,
    request: records_pb2.SearchRecordsRequest,
    dense: Dense | None = None,
) -> records_pb2.SearchRecordsResponse:
    """Find what answers the request.

    Raises:
        UnavailableError: The index cannot be read.
    """
    return _Search(index, load, request, dense).response()


@dataclass(frozen=True)
class _Sought:
    """What the index is asked for, with or without what is near by meaning."""

    terms: Sequence[str]
    """What finds records."""
    values: Mapping[int, Sequence[str]]
    """By word: what it is asked for by as a whole value."""
    counted: Sequence[str]
    """What finds none, and is counted in those that are found."""
    faint: Collection[str]
    """Terms that so many records have that they find hardly any."""


class _Search:
    def __init__(
        self,
        index: LexicalIndex,
        load: Load,
        request: records_pb2.SearchRecordsRequest,
        dense: Dense | None,
    ) -> None:
        self._index = index
        self._shelf = Shelf(load)
        self._shown: list[ReadRecord] = []
        self._finders: dict[frozenset[int], Callable[[str], bool]] = {}
        self._request = request
        self._dense = dense
        self._is_raw = request.raw or bool(request.kinds)
        self._kinds = tuple(request.kinds) or SEARCHED_KINDS
        self._within = [Within(partition_of(kind)) for kind in self._kinds]
        self._limit = min(request.limit or SEARCH_DEFAULT_HITS, SEARCH_LIMIT_HITS)

    def response(self) -> records_pb2.SearchRecordsResponse:
        response = records_pb2.SearchRecordsResponse()
        verdict = response.verdict
        if len(self._request.query.strip()) < QUERY_LEAST_CHARACTERS:
            verdict.code = records_pb2.VERDICT_CODE_NO_MATCH
            verdict.tokens_total = 0
            return response
        total = self._index.count([Within(partition_of(kind)) for kind in SEARCHED_KINDS])
        question = understand(self._request.query)
        if not self._is_raw:
            verdict.tokens_total = question.significant
            verdict.tokens_scored = 0
        if not total:
            verdict.code = records_pb2.VERDICT_CODE_EMPTY_STORE
            return response
        if not question.words:
            verdict.code = records_pb2.VERDICT_CODE_NO_MATCH
            if not self._is_raw:
                verdict.dropped_function.extend(_cut(question.function))
                verdict.candidates = 0
            return response
        verdict.retrievers.append("lexical")
        supports = supports_of(self._index, question, self._within, total)
        verdict.unsupported.extend(_cut([one.word.text for one in supports if not one.is_found]))
        sought = self._sought(question, supports)
        ranked, is_cut = self._ranked(sought, supports, None)
        decision = self._decision(question, supports, ranked, None)
        meaning = self._meaning(question, supports, decision)
        if meaning is not None:
            verdict.retrievers.append("dense")
            ranked, is_cut = self._ranked(sought, supports, meaning)
            decision = self._decision(question, supports, ranked, meaning)
        if is_cut:
            verdict.notes.append(
                f"more records have these words than the {len(ranked)} that were compared"
            )
        self._fill(response, supports, ranked, decision)
        if not self._is_raw and decision.code != records_pb2.VERDICT_CODE_ABSTAINED_ON:
            verdict.dropped_function.extend(_cut(question.function))
        return response

    def _meaning(
        self, question: Question, supports: Sequence[Support], decision: Decision
    ) -> Meaning | None:
        """What the dense index adds, where the words alone do not tell; it takes a while."""
        is_told = decision.code == records_pb2.VERDICT_CODE_OK and decision.best_coverage == 1
        is_denied = decision.code == records_pb2.VERDICT_CODE_NEGATION_ABSTAIN
        if self._dense is None or self._is_raw or is_told or is_denied:
            return None
        if not is_understood(question):
            return None
        # A name that very many records have drowns in a vector what is asked of it.
        drowning = {one.word.text for one in supports if one.as_value > _CANDIDATES}
        words = [
            word
            for word in self._request.query.split()
            if not drowning.intersection(_WORDS.findall(folded(word)))
        ]
        return Meaning(self._dense, question, " ".join(words), self._kinds)

    def _sought(self, question: Question, supports: Sequence[Support]) -> _Sought:
        terms = list(
            dict.fromkeys(
                term for one in supports for term in (*one.terms, *one.pieces) if one.is_found
            )
        )
        values = _value_terms(question)
        asked = [term for several in values.values() for term in several]
        sizes = self._index.lists(asked, self._within)
        asked = [term for term in asked if term in sizes]
        counted = list(dict.fromkeys([*asked, whole_value(ASKS)]))
        # So many records have it as a value that it finds none of them.
        faint = {term for one in supports if one.as_value > _CANDIDATES for term in one.terms}
        return _Sought(terms, values, counted, faint)

    def _ranked(
        self, sought: _Sought, supports: Sequence[Support], meaning: Meaning | None
    ) -> tuple[list[Ranked], bool]:
        terms, counted, faint = sought.terms, sought.counted, sought.faint
        near = meaning.similarity if meaning is not None else {}
        keys = list(near)
        gathering = self._index.gather(terms, self._within, _CANDIDATES, counted, faint, keys)
        if gathering.is_cut and (named := self._named(terms, faint, gathering)):
            keys += named
            gathering = self._index.gather(terms, self._within, _CANDIDATES, counted, faint, keys)
        ranking = Ranking(gathering, supports, [*terms, *counted], sought.values, near)
        return ranking.ranked, gathering.is_cut

    def _named(
        self, terms: Sequence[str], faint: Collection[str], gathering: Gathering
    ) -> list[str]:
        """Keys of records kept by name that as many events would crowd out."""
        within = [
            where
            for kind, where in zip(self._kinds, self._within, strict=True)
            if kind != records_pb2.RECORD_KIND_JOURNAL
        ]
        if not within or len(within) == len(self._within):
            return []
        found = self._index.gather(terms, within, self._limit, (), faint, alone=True)
        known = gathering.documents.keys()
        return [one.key for number, one in found.documents.items() if number not in known]

    def _decision(
        self,
        question: Question,
        supports: Sequence[Support],
        ranked: Sequence[Ranked],
        meaning: Meaning | None,
    ) -> Decision:
        if self._is_raw:
            rows = [one for one in ranked if one.had]
            code = records_pb2.VERDICT_CODE_OK if rows else records_pb2.VERDICT_CODE_NO_MATCH
            return Decision(code, rows)
        return decide(
            Evidence(
                question=question,
                supports=supports,
                ranked=ranked,
                join=lambda: self._joint(supports, ranked),
                shelf=self._shelf,
                meaning=meaning,
                recorded_terms=self._recorded(supports),
            )
        )

    def _recorded(self, supports: Sequence[Support]) -> float:
        """How many terms the records have that have the question's names."""
        names = [one for one in supports if one.word.weight is Weight.NAME and one.is_found]
        return max((one.documents for one in names), default=0) * self._index.average_length(
            self._within
        )

    def _joint(self, supports: Sequence[Support], ranked: Sequence[Ranked]) -> Joint:
        """The linked records that together have most of the question.

        Records are linked that have a whole value or a name in common.
        """
        bases = sorted(ranked, key=lambda one: (-one.coverage, -one.score))[:_BASES]
        by_base = {one.document.key: self._link_values(one) for one in bases}
        values = list(dict.fromkeys(value for several in by_base.values() for value in several))
        sizes = self._index.lists(values, self._within)
        values = [value for value in values if 0 < sizes.get(value, 0) <= _LINK_LIMIT_RECORDS]
        terms = list(dict.fromkeys(t for one in supports for t in (*one.terms, *one.pieces)))
        gathering = self._index.gather(values, self._within, _LINKED, terms, alone=True)
        others = Ranking(gathering, supports, [*values, *terms], {}).ranked
        others.sort(key=lambda one: -one.coverage)
        best, most = Joint(), -1.0
        for base in bases:
            had, rows = base.had, [base]
            own = by_base[base.document.key]
            links = [at for at, value in enumerate(values) if value in own]
            for other in others:
                if not other.had <= had and any(other.document.counts[at] for at in links):
                    had, rows = had | other.had, [*rows, other]
            share = sum(supports[place].share for place in had)
            if share > most:
                best, most = Joint(had, tuple(rows)), share
        return best

    def _link_values(self, one: Ranked) -> list[str]:
        record = self._shelf.get(one.document.key)
        if record is None:
            return []
        values = sorted(record.text.values, key=lambda value: (-value.count("_"), value))
        return [
            whole_value(value)
            for value in values[:_LINK_VALUES]
            if not value.replace("_", "").isdigit() and len(value) > 2
        ]

    def _fill(
        self,
        response: records_pb2.SearchRecordsResponse,
        supports: Sequence[Support],
        ranked: Sequence[Ranked],
        decision: Decision,
    ) -> None:
        verdict = response.verdict
        for one in _journal_last(decision.rows):
            if len(response.hits) == self._limit:
                break
            record = self._shelf.get(one.document.key)
            if record is not None:
                self._shown.append(record)
                self._add_hit(response, supports, one, record)
        response.total = len(decision.rows)
        response.tampered = self._shelf.missing
        verdict.code = decision.code
        if decision.code == records_pb2.VERDICT_CODE_OK and not response.hits:
            verdict.code = records_pb2.VERDICT_CODE_NO_MATCH
        verdict.tokens.extend(_cut(decision.tokens))
        if self._is_raw:
            return
        verdict.gate = decision.gate
        verdict.dropped_coverage_floor = decision.below_floor
        verdict.dropped_anchor = decision.without_anchor
        if decision.code != records_pb2.VERDICT_CODE_ABSTAINED_ON:
            verdict.tokens_scored = sum(one.is_found for one in supports)
            verdict.candidates = sum(bool(one.had) for one in ranked)
            if decision.code == records_pb2.VERDICT_CODE_NEGATION_ABSTAIN:
                verdict.tokens_scored = 0
        is_abstained = decision.code in _ABSTENTIONS
        if decision.best_coverage is not None and not is_abstained:
            verdict.best_coverage = round(decision.best_coverage, 4)
        self._fill_forms(verdict, supports, decision)

    def _fill_forms(
        self, verdict: records_pb2.Verdict, supports: Sequence[Support], decision: Decision
    ) -> None:
        for asked, meant in decision.forms:
            verdict.forms.add(asked=_shortened(asked), found=_shortened(meant), how="meaning")
        for support in supports:
            found, how = None, support.how
            if how and support.terms:
                found = support.terms[0]
            elif not how:
                found, how = self._by_stem(support), "stem"
            if found:
                asked = _shortened(support.word.text)
                verdict.forms.add(asked=asked, found=_shortened(found), how=how)

    def _by_stem(self, support: Support) -> str | None:
        """The word of the hits that has the asked word's stem, where none has the word itself."""
        asked = support.word.text
        if not support.terms or not asked.isalpha():
            return None
        found = None
        for record in self._shown:
            words = record.words
            if asked in words:
                return None
            stems = {stem(term) for term in support.terms}
            found = found or next((word for word in words if stem(word) in stems), None)
        return found

    def _finder(self, supports: Sequence[Support], had: frozenset[int]) -> Callable[[str], bool]:
        """Tells the words by which records were found that have these of the question's."""
        known = self._finders.get(had)
        if known is not None:
            return known
        terms = {term for at in had for term in (*supports[at].terms, *supports[at].pieces)}
        stems = {stem(term) for term in terms}
        pieces = [term for term in terms if len(term) > 1 and not term.isascii()]

        @cache
        def is_found(word: str) -> bool:
            plain = folded(word)
            return plain in terms or stem(plain) in stems or any(term in plain for term in pieces)

        self._finders[had] = is_found
        return is_found

    def _add_hit(
        self,
        response: records_pb2.SearchRecordsResponse,
        supports: Sequence[Support],
        one: Ranked,
        record: ReadRecord,
    ) -> None:
        found = record.found
        limit = self._request.body_limit_characters
        body = found.body_json
        is_found = self._finder(supports, one.had)
        hit = response.hits.add(
            kind=found.kind,
            key=found.key,
            body_json=body[:limit] if limit else body,
            body_characters=len(body),
            snippet=snippet(body, is_found),
            rank=-one.score,
            ts=found.ts,
            matched=_cut([supports[place].word.text for place in sorted(one.had)]),
        )
        if found.category is not None:
            hit.category = found.category


def _value_terms(question: Question) -> dict[int, list[str]]:
    """By word: what it is asked for by as a whole value, alone and with the words next to it."""
    terms: dict[int, list[str]] = {place: [] for place in range(len(question.words))}
    for size in (1, 2, 3):
        for start in range(len(question.words) - size + 1):
            words = question.words[start : start + size]
            if words[-1].place - words[0].place != size - 1:
                continue
            value = joined(" ".join(word.text for word in words))
            if value:
                for place in range(start, start + size):
                    terms[place].append(whole_value(value))
    return terms


def _cut(words: Sequence[str]) -> list[str]:
    return [_shortened(word) for word in words[:_VERDICT_WORDS]]


def _shortened(word: str) -> str:
    return word[:_VERDICT_WORD_CHARACTERS]


def _journal_last(rows: Sequence[Ranked]) -> list[Ranked]:
    """Of rows with the same words of the question, events behind what is kept by name."""
    ordered = list(rows)
    places: dict[frozenset[int], list[int]] = {}
    for place, one in enumerate(ordered):
        if one.had:
            places.setdefault(one.had, []).append(place)
    for several in places.values():
        alike = sorted((ordered[place] for place in several), key=_is_event)
        for place, one in zip(several, alike, strict=True):
            ordered[place] = one
    return ordered


def _is_event(one: Ranked) -> bool:
    return split_key(one.document.key)[0] == records_pb2.RECORD_KIND_JOURNAL
