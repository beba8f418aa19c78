"""A record that a search looks into: its words, its whole values, and what it denies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.timestamp_pb2 import Timestamp

from muniment.kit.index.analysis import WORD_CHARACTERS, stem
from muniment.memory.records.texts import RecordText, read_text, record_text
from muniment.memory.records.words import DENYING, folded
from muniment.v1 import records_pb2

__all__ = ["Found", "Load", "ReadRecord", "Shelf", "words_of"]

_WORD = re.compile(rf"[{WORD_CHARACTERS}\u0300-\u036f]+")
_CONTRACTED = re.compile(r"(\w)n['’]t\b")

_ALL_DENYING = frozenset().union(*DENYING.values()) | {"cannot", "unpaid", "undone"}
_UNSPACED_DENYING = re.compile("没有|不|没|無い|無|无|未|ない|ません|ずに|ไม่")


@dataclass(frozen=True)
class Found:
    """The record of a hit."""

    kind: records_pb2.RecordKind.ValueType
    key: str
    category: str | None
    body_json: str
    ts: Timestamp


Load = Callable[[str], Found | None]
"""Reads the record of an index's key; None where there is none to be believed."""


def words_of(text: str) -> tuple[str, ...]:
    """The text's words, folded, in order; contractions are taken apart."""
    spelt_out = _CONTRACTED.sub(r"\1 not", text)
    return tuple(_WORD.findall(folded(spelt_out).replace("_", " ")))


class ReadRecord:
    """A record, taken apart."""

    def __init__(self, found: Found) -> None:
        self.found = found

    @cached_property
    def text(self) -> RecordText:
        """As it is indexed."""
        found = self.found
        is_event = found.kind == records_pb2.RECORD_KIND_JOURNAL
        names = () if is_event else tuple(filter(None, (found.category, found.key)))
        body = read_text(found.body_json)
        return record_text(names, body, is_event=is_event)

    @cached_property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """By value: its words, folded, in order; contractions are taken apart."""
        return tuple(words_of(line) for line in self.text.text.split("\n"))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words, folded, in order."""
        return tuple(word for line in self.lines for word in line)

    def denies(self, terms: frozenset[str], within_words: int) -> bool:
        """Whether it denies one of the terms: a word that denies stands shortly before or after.

        Both in the same value.
        """
        stems = {stem(term) for term in terms}
        for line in self.lines:
            denials = [place for place, word in enumerate(line) if word in _ALL_DENYING]
            for place, word in enumerate(line) if denials else ():
                is_near = any(-2 <= place - denial <= within_words for denial in denials)
                if is_near and (word in terms or stem(word) in stems):
                    return True
        return self._denies_unspaced(terms)

    def _denies_unspaced(self, terms: frozenset[str]) -> bool:
        text = self.text.text
        for denial in _UNSPACED_DENYING.finditer(text):
            around = text[max(0, denial.start() - 8) : denial.end() + 8]
            if any(len(term) > 1 and not term.isascii() and term in around for term in terms):
                return True
        return False


class Shelf:
    """The records that one search has read, each once."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._read: dict[str, ReadRecord | None] = {}

    def get(self, key: str) -> ReadRecord | None:
        """The record; None where it is not to be had any more."""
        if key not in self._read:
            found = self._load(key)
            self._read[key] = None if found is None else ReadRecord(found)
        return self._read[key]

    @property
    def missing(self) -> int:
        """How many that the index has were not to be had."""
        return sum(one is None for one in self._read.values())
