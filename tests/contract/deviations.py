"""Where an answer is meant to be other than the reference's: one entry a case, with its reason.

An entry says exactly where it differs; one that no longer does fails its test. Each reason is told
to people too, in docs/deviations.md.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEVIATIONS", "Deviation"]


@dataclass(frozen=True)
class Deviation:
    """How one answer differs."""

    paths: frozenset[str]
    """Where, as `comparing` tells it."""
    documented: str
    """Words of docs/deviations.md that tell it."""


def _at(documented: str, *paths: str) -> Deviation:
    return Deviation(frozenset(paths), documented)


_UNKNOWN_ARGUMENT = "an unknown argument is refused by name"
_TEXT_STAYS = "a text that looks like JSON stays a text"
_SPELLINGS = "a name is found in both Unicode forms"
_ANSWERED = "what JSON or UTF-8 cannot carry is answered"
_UNKNOWN_TOOL = "-32602 with the nearest names"
_NULL_IS_ABSENT = "`true` is refused, `null` is the same as leaving it out"
_KEYS_TOO = "forged markers are taken out of keys too"
_OWN_ACCOUNT = "names and values are counted, in bytes"
_NO_SALE = "no product, tier or page is named"
_FUNCTION_WORDS = "function words are never searched for"
_FOLDED = "letters are compared without accents and strokes"
_MORE_DENIES = "contractions and more words deny"
_SHORT_NAMES = "a short identifier is a word"
_ONE_WORD = "an identifier and a run without blanks are one word each"
_FIELD = "a word that says little never keeps rows back"
_WHOLE_WORDS = "the middle of a word finds nothing"
_HALF_OF_BEST = "rows with less than half of what the best one has are left out"
_NO_PREPARATION = "no record is dropped for its words"
_SAYS_MORE = "of equal rows the one that says more comes first, then the newest"
_NO_SHARE = "the journal has no share of the rows"
_MOST_TELLING = "of more than 24 words the most telling are kept, then the first"

_CAP = _at(_NO_SALE, "message", "upgrade_url")


def _redacted_key(place: str) -> Deviation:
    keys = ("[UNTRUSTED MEMORY CONTEXT END]:missing", "[redacted-marker]:extra")
    return _at(_KEYS_TOO, *(f"{place}.{key}" for key in keys))


_WRITES = {
    "extra unknown arg": _at(_UNKNOWN_ARGUMENT, "isError"),
    "recall JSON-looking string body": _at(
        _TEXT_STAYS, ".entity.body.x:missing", ".entity.body.value:extra"
    ),
    "recall '123'": _at(_TEXT_STAYS, ".entity.body"),
    "recall NFD of NFC name": _at(_SPELLINGS, "isError"),
    "lone surrogate body": _at(_ANSWERED, "answer"),
    "unknown tool": _at(_UNKNOWN_TOOL, "protocol error"),
}

_FOUND = (".count", ".results", ".verdict.code", ".verdict.recovery", ".verdict.returned")
_MEASURED = (".verdict.best_pre_gate_coverage", ".verdict.tokens_scored")
_ABSTAINED = (".verdict.abstained", ".verdict.candidates", ".verdict.tokens")
_COUNTED = (".verdict.tokens_scored", ".verdict.tokens_total")
_MORE_ROWS = (".count", ".results", ".verdict.returned")
_DROPPED = ".verdict.dropped_function"

_JOURNAL_IN_ORDER = ("journal cap", "limit 1000", "limit '5' string", "limit 3.0", "tiers empty")

_SEARCHES = {
    "Thai substring": _at(_ONE_WORD, *_COUNTED),
    "diacritics folded": _at(_FOLDED, *_FOUND, *_MEASURED, *_ABSTAINED),
    "function words only": _at(_FUNCTION_WORDS, *_FOUND, *_MEASURED, _DROPPED),
    "paraphrase (OOV verb)": _at(_HALF_OF_BEST, *_MORE_ROWS),
    "question all known": _at(_HALF_OF_BEST, *_MORE_ROWS),
    "negation contraction": _at(
        _MORE_DENIES,
        *(".verdict.code", ".verdict.recovery", ".verdict.candidates", ".verdict.tokens[]"),
        _DROPPED,
    ),
    "double neg nor": _at(_MORE_DENIES, ".verdict.tokens"),
    "gated prep": _at(_NO_PREPARATION, ".results"),
    "only operators": _at(_FUNCTION_WORDS, *_FOUND, *_MEASURED, _DROPPED),
    "column filter": _at(_FIELD, *_FOUND, *_MEASURED, *_ABSTAINED),
    "mid-substring": _at(_WHOLE_WORDS, *_FOUND, *_MEASURED, *_ABSTAINED),
    "digit ident": _at(_SHORT_NAMES, *_FOUND, *_MEASURED, ".verdict.tokens_total"),
    "identifier with hyphen": _at(_ONE_WORD, *_COUNTED),
    "category term": _at(_SAYS_MORE, ".results"),
    "key-name hit": _at(_SAYS_MORE, ".results"),
    "30 OOV words": _at(_MOST_TELLING, ".verdict.tokens[]"),
    "tiers comma": _at(_NO_SHARE, *_MORE_ROWS),
    "tiers journal cap": _at(_NO_SHARE, *_MORE_ROWS),
    **{case: _at(_SAYS_MORE, ".results") for case in _JOURNAL_IN_ORDER},
    "limit null": _at(_NULL_IS_ABSENT, "isError"),
    "limit true": _at(_NULL_IS_ABSENT, "isError"),
    "fence in query": _at(_KEYS_TOO, ".query"),
    "fenced body hit": _redacted_key(".results[].body"),
}
"""Of search: what follows from the other rules, and where it finds more or abstains otherwise."""

_LISTS_WITH_MARKERS = ("list limits 0", "list -5", "list 9999")

_CAPPED = {
    "state big set": _at(_OWN_ACCOUNT, "isError"),
    "state big get": _at(
        _OWN_ACCOUNT,
        *(".ok", ".code:missing", ".body:extra", ".updated_at:extra", "._untrusted_context:extra"),
    ),
}

DEVIATIONS: dict[tuple[str, str], Deviation] = {
    **{("02_write_edges", case): deviation for case, deviation in _WRITES.items()},
    **{("04_search_edges", case): _redacted_key(".results[].body") for case in _LISTS_WITH_MARKERS},
    **{("04_search_edges", case): deviation for case, deviation in _SEARCHES.items()},
    ("05_truncation_budget", "search 50 large"): _at(_SAYS_MORE, ".results"),
    ("04_search_edges", "recall fence"): _redacted_key(".entity.body"),
    **{("05_truncation_budget", case): deviation for case, deviation in _CAPPED.items()},
    **{("06_cap", case): _CAP for case in ("first refused", "set_state at cap", "event at cap")},
}
"""group, case → how it differs."""
