"""Makes symbols of captured definitions: what stands in what, with signature, text and hash."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from muniment.code.capturing import Captured, Draft
from muniment.code.chains import Chains, chain_of_type
from muniment.code.hashing import SyntaxHasher
from muniment.code.languages import Rules
from muniment.code.limits import (
    CHAIN_LIMIT_CHARACTERS,
    DOC_LIMIT_CHARACTERS,
    NESTING_LIMIT,
    SIGNATURE_LIMIT_CHARACTERS,
)
from muniment.code.source import Source, Span, places
from muniment.v1 import code_pb2
from muniment.v1.store_pb2 import CodeSymbol

__all__ = ["SymbolTable", "build_symbols"]

_FUNCTIONS = frozenset(
    {code_pb2.SYMBOL_KIND_FUNCTION, code_pb2.SYMBOL_KIND_METHOD, code_pb2.SYMBOL_KIND_MACRO}
)
_TYPES = frozenset(
    {
        code_pb2.SYMBOL_KIND_CLASS,
        code_pb2.SYMBOL_KIND_STRUCT,
        code_pb2.SYMBOL_KIND_ENUM,
        code_pb2.SYMBOL_KIND_TRAIT,
        code_pb2.SYMBOL_KIND_INTERFACE,
        code_pb2.SYMBOL_KIND_TYPE,
        code_pb2.SYMBOL_KIND_OTHER,
    }
)
_VALUES = frozenset({code_pb2.SYMBOL_KIND_CONSTANT, code_pb2.SYMBOL_KIND_FIELD})
_VALUE_SIGNATURE_LIMIT_CHARACTERS = 120
_DOC_BYTES = 4096
_AROUND_NAMES = "\"':@"
"""What may stand around a name and is no part of it."""
_TAG = re.compile(r"</?(?:br|code|inheritdoc|p|para|remarks|summary)\b[^>]*>")
_ROUGH_BYTES = 4
"""Bytes per character of what is cut, at most."""


class SymbolTable:
    """The symbols of a file, and which of them a place stands in.

    A symbol is told by one more than its index, and the file by 0, as in the store's contract.

    Attributes:
        messages: The symbols, in the order of their places.
        inheritance: Where each names its bases: `(start, end, chain, kind of edge)`.
        named_at: Where their names begin.
        left_out: Definitions beyond the limits.
    """

    def __init__(self, drafts: Sequence[Draft], left_out: int) -> None:
        """The definitions, sorted; none overlaps another without standing in it."""
        self.messages: list[CodeSymbol] = []
        self.inheritance: list[tuple[int, int, str, int]] = []
        self._names = [draft.name[0] if draft.name else -1 for draft in drafts]
        self.named_at = frozenset(self._names)
        self._sorted_names = sorted(self._names)
        self.left_out = left_out
        self.parents: list[int] = []
        self._edges: list[int] = []
        self._owners: list[int] = []
        open_ones: list[int] = []
        for index, draft in enumerate(drafts):
            self._close(drafts, open_ones, draft.start)
            self.parents.append(open_ones[-1] + 1 if open_ones else 0)
            open_ones.append(index)
            self._mark(draft.start, index + 1)
        self._close(drafts, open_ones, None)

    def scope_at(self, offset: int) -> int:
        """The innermost symbol around a place."""
        nearest = bisect_right(self._edges, offset) - 1
        return self._owners[nearest] if nearest >= 0 else 0

    def scopes_at(self, offsets: Sequence[int]) -> list[int]:
        """The same of many places."""
        if not self._edges:
            return [0] * len(offsets)
        nearest = np.searchsorted(places(self._edges), places(offsets), side="right")
        scopes: list[int] = places([0, *self._owners])[nearest].tolist()
        return scopes

    def type_around(self, scope: int) -> int:
        """The nearest type around a scope, itself included; 0 if there is none."""
        while scope and not self.is_type(scope):
            scope = self.parents[scope - 1]
        return scope

    def binding_scope_at(self, offset: int) -> int:
        """The scope of a name that is bound there: a constant or field is none itself."""
        scope = self.scope_at(offset)
        while scope and self.messages[scope - 1].kind in _VALUES:
            scope = self.parents[scope - 1]
        return scope

    def is_named_at(self, scope: int, offset: int) -> bool:
        """Whether the symbol's own name stands there."""
        return scope > 0 and self._names[scope - 1] == offset

    def is_name_within(self, start: int, end: int) -> bool:
        """Whether a symbol's name begins there, such as the last one of `void Foo::run()`."""
        nearest = bisect_left(self._sorted_names, start)
        return nearest < len(self._sorted_names) and self._sorted_names[nearest] < end

    def is_type(self, scope: int) -> bool:
        """Whether the scope is a type's."""
        return scope > 0 and self.messages[scope - 1].kind in _TYPES

    def is_function(self, scope: int) -> bool:
        """Whether the scope is a function's."""
        return scope > 0 and self.messages[scope - 1].kind in _FUNCTIONS

    def _close(self, drafts: Sequence[Draft], open_ones: list[int], until: int | None) -> None:
        while open_ones and (until is None or drafts[open_ones[-1]].end <= until):
            end = drafts[open_ones.pop()].end
            self._mark(end, open_ones[-1] + 1 if open_ones else 0)

    def _mark(self, offset: int, owner: int) -> None:
        if self._edges and self._edges[-1] == offset:
            self._owners[-1] = owner
        else:
            self._edges.append(offset)
            self._owners.append(owner)


def build_symbols(
    captured: Captured, source: Source, chains: Chains, rules: Rules, hasher: SyntaxHasher
) -> SymbolTable:
    """The symbols of a file."""
    drafts, left_out = _nested(captured, rules.symbols_limit)
    table = SymbolTable(drafts, left_out)
    for facet in captured.loose:
        owner = table.scope_at(facet[1][0])
        if owner:
            drafts[owner - 1].facets.append(facet)
    attributes = captured.spans["attribute"]
    begins = [_behind_attributes(source, draft, attributes) for draft in drafts]
    lines = source.lines_of(places(begins)).tolist()
    last_lines = source.lines_of(places([max(draft.end - 1, 0) for draft in drafts])).tolist()
    comments = _Comments(source, captured, rules)
    for index, draft in enumerate(drafts):
        symbol = CodeSymbol(
            name=_name(source, draft),
            kind=draft.kind,
            parent=table.parents[index],
            line=lines[index],
            end_line=last_lines[index],
            signature=_signature(source, draft, begins[index], attributes),
            ast_hash=hasher.hash(draft.whole, draft.end),
        )
        table.messages.append(symbol)
        _describe(symbol, draft, source, chains, rules)
        symbol.doc = symbol.doc or comments.above(draft.whole)
        _note_inheritance(table, draft, chains, source, rules)
    return table


def _nested(captured: Captured, limit: int) -> tuple[list[Draft], int]:
    """The definitions that become symbols, sorted, their kinds settled; and how many are left out.

    A definition that overlaps another without standing in it comes of broken syntax.
    """
    kept: list[Draft] = []
    around: list[Draft] = []
    left_out = 0
    named = [draft for draft in captured.drafts.values() if draft.name is not None]
    for draft in sorted(named, key=lambda one: (one.start, -one.end)):
        while around and around[-1].end <= draft.start:
            around.pop()
        parent = around[-1] if around else None
        if draft.kind in _VALUES and parent is not None and parent.kind in _FUNCTIONS:
            continue
        overlaps = parent is not None and draft.end > parent.end
        if overlaps or len(around) >= NESTING_LIMIT or len(kept) >= limit:
            left_out += 1
            continue
        if parent is not None and parent.kind in _TYPES:
            if draft.kind == code_pb2.SYMBOL_KIND_FUNCTION:
                draft.kind = code_pb2.SYMBOL_KIND_METHOD
            elif draft.kind == code_pb2.SYMBOL_KIND_CONSTANT:
                draft.kind = code_pb2.SYMBOL_KIND_FIELD
        kept.append(draft)
        around.append(draft)
    return kept, left_out


def _name(source: Source, draft: Draft) -> str:
    if draft.name is None:
        return ""
    text = source.text(*draft.name)
    name = text if text.isidentifier() else " ".join(text.split())
    name = name.strip(_AROUND_NAMES) or name
    return name[:CHAIN_LIMIT_CHARACTERS]


def _behind_attributes(source: Source, draft: Draft, attributes: Sequence[Span]) -> int:
    """Where a definition begins when the attributes at its own beginning are passed over."""
    begin = draft.start
    if not attributes:
        return begin
    at = bisect_left(attributes, (begin, 0))
    while at < len(attributes) and attributes[at][0] == begin and draft.name is not None:
        end = attributes[at][1]
        if end > draft.name[0]:
            break
        between = source.code[end : draft.name[0]]
        begin = end + len(between) - len(between.lstrip())
        at = bisect_left(attributes, (begin, 0))
    return begin


def _signature(source: Source, draft: Draft, begin: int, attributes: Sequence[Span]) -> str:
    limit = SIGNATURE_LIMIT_CHARACTERS
    if draft.kind in _VALUES:
        limit = _VALUE_SIGNATURE_LIMIT_CHARACTERS
    end = min(draft.body, begin + limit * _ROUGH_BYTES)
    parts = []
    at = bisect_left(attributes, (begin, 0)) if attributes else 0
    while at < len(attributes) and attributes[at][0] < end:
        start, behind = attributes[at]
        parts.append(source.text(begin, start) + " ")
        begin, at = max(begin, behind), at + 1
    text = " ".join("".join([*parts, source.text(begin, end)]).split())
    text = text[:limit].rstrip(" :{=;,*&" if draft.last else " :{=;,").removesuffix("=>").rstrip()
    if draft.name is None or (text and draft.name[0] < end):
        return text
    # It stands behind the body, or there is nothing before that.
    return f"{text} {_name(source, draft)}".strip()[:limit]


def _describe(
    symbol: CodeSymbol, draft: Draft, source: Source, chains: Chains, rules: Rules
) -> None:
    """What else was captured of it."""
    for facet, span in draft.facets:
        if facet == "property":
            symbol.is_property = True
        elif facet == "static":
            symbol.is_static = symbol.kind != code_pb2.SYMBOL_KIND_FUNCTION
        elif facet == "type" and not symbol.type:
            symbol.type = chain_of_type(source.text(*span), rules.wrappers)
        elif facet == "receiver" and not symbol.receiver:
            symbol.receiver = chain_of_type(source.text(*span), rules.wrappers)
            if symbol.kind == code_pb2.SYMBOL_KIND_FUNCTION:
                symbol.kind = code_pb2.SYMBOL_KIND_METHOD
        elif facet == "doc" and not symbol.doc:
            text = source.content[span[0] : span[1]].decode(errors="replace")
            symbol.doc = _first_line(text.strip("rRbBuUfF").strip("\"'`"))


def _note_inheritance(
    table: SymbolTable, draft: Draft, chains: Chains, source: Source, rules: Rules
) -> None:
    symbol = table.messages[-1]
    for facet, (start, end) in draft.facets:
        if facet not in ("inherits", "implements"):
            continue
        chain = chain_of_type(source.text(start, end), rules.wrappers)
        if not chain or chain in symbol.bases:
            continue
        symbol.bases.append(chain)
        kind = code_pb2.EDGE_KIND_INHERITS
        if facet == "implements":
            symbol.interfaces.append(chain)
            kind = code_pb2.EDGE_KIND_IMPLEMENTS
        table.inheritance.append((max(start, draft.start), end, chain, kind))


def _first_line(text: str) -> str:
    for line in text.splitlines():
        stripped = _TAG.sub("", line).strip(" \t/*#!-;<>=")
        if stripped:
            return stripped[:DOC_LIMIT_CHARACTERS]
    return ""


class _Comments:
    """The comments of a file, by where they end."""

    def __init__(self, source: Source, captured: Captured, rules: Rules) -> None:
        self._source = source
        attributes = captured.spans["attribute"]
        self._attributes = frozenset(attributes)
        self._spans = sorted([*captured.spans["comment"], *attributes])
        self._ends = [end for _, end in self._spans]
        self._marks = tuple(mark.encode() for mark in rules.doc_marks)

    def above(self, offset: int) -> str:
        """First line of the comments right above a definition; empty if there are none."""
        content = self._source.content
        first = None
        at = bisect_right(self._ends, offset) - 1
        while at >= 0:
            start, end = span = self._spans[at]
            gap = content[end:offset]
            line_start = content.rfind(b"\n", 0, start) + 1
            if gap.strip() or gap.count(b"\n") > 1 or content[line_start:start].strip():
                break
            if span not in self._attributes:
                if not content.startswith(self._marks, start):
                    break
                first = start, (first or span)[1]
            offset, at = start, at - 1
        if first is None:
            return ""
        text = content[first[0] : first[1]][:_DOC_BYTES]
        return _first_line(text.decode(errors="replace"))
