"""Runs a language's query over a syntax tree, and sorts what it captured."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node, Query, QueryCursor

from muniment.code.source import Span
from muniment.v1 import code_pb2

__all__ = ["Captured", "Draft", "capture"]

WINDOW_BYTES = 256 * 1024
"""As much of a file is queried at a time: what the binding makes of a match is large."""

_DEPTH_LIMIT = 2_000
"""Nodes within one another; what is deeper is not looked at, which would take ever longer."""

_BROKEN_CHILDREN_LIMIT = 5_000
"""Nodes side by side in one part that is no syntax."""

_KINDS = {
    name.removeprefix("SYMBOL_KIND_").lower(): value
    for name, value in code_pb2.SymbolKind.items()
    if value
}
_SPANS = ("comment", "text", "hole", "block", "call", "reference", "import", "local", "attribute")
_BOUND = ("binding.name", "binding.field", "binding.parameter")
_FACETS = ("inherits", "implements", "type", "receiver", "doc", "property", "static")


@dataclass(slots=True)
class Draft:
    """A definition as it was captured.

    Attributes:
        name: Where its name stands; none of what was only said to be `@of`.
        body: Where its signature ends.
        whole: Where what belongs to it begins, decorators included.
        pattern: Number of the pattern that said so.
        facets: What else was captured of it: `(name of the capture, where)`.
        last: The last of the further names that the same declaration declares.
    """

    start: int
    end: int
    kind: code_pb2.SymbolKind.ValueType
    name: Span | None
    body: int
    whole: int
    pattern: int
    facets: list[tuple[str, Span]] = field(default_factory=list)
    last: Draft | None = None


@dataclass(slots=True)
class Captured:
    """What a query found in a file, as offsets.

    Attributes:
        spans: By the captures' names, for those that say nothing but where they are.
        drafts: The definitions, by where they are.
        loose: What belongs to the innermost definition around it.
        bindings: Names, with their types and values, and what they are captured as.
    """

    spans: dict[str, list[Span]] = field(default_factory=lambda: {name: [] for name in _SPANS})
    drafts: dict[Span, Draft] = field(default_factory=dict)
    loose: list[tuple[str, Span]] = field(default_factory=list)
    bindings: list[tuple[Span, Span | None, Span | None, str]] = field(default_factory=list)
    package: Span | None = None


def capture(query: Query, root: Node) -> Captured:
    """What the query captures under a node."""
    captured = Captured()
    if _is_hopeless(root):
        return captured
    spans_of = captured.spans
    size = root.end_byte
    for low in range(0, size, WINDOW_BYTES):
        high = min(low + WINDOW_BYTES, size)
        cursor = QueryCursor(query)
        cursor.set_max_start_depth(_DEPTH_LIMIT)
        if size > WINDOW_BYTES:
            cursor.set_byte_range(low, high)
        for pattern, found in cursor.matches(root):
            if len(found) == 1:
                ((name, nodes),) = found.items()
                if name in spans_of:
                    for node in nodes:
                        start = node.start_byte
                        if low <= start < high:
                            spans_of[name].append((start, node.end_byte))
                    continue
            if found and low <= min(nodes[0].start_byte for nodes in found.values()) < high:
                _take(captured, found, pattern)
    for name, spans in captured.spans.items():
        captured.spans[name] = sorted(set(spans))
    return captured


def _is_hopeless(root: Node) -> bool:
    """Whether the parser gave up on so much that walking it would take the square of its size."""
    broken = [node for node in (root, *root.children) if node.is_error] if root.has_error else []
    return any(node.child_count > _BROKEN_CHILDREN_LIMIT for node in broken)


def _take(captured: Captured, found: dict[str, list[Node]], pattern: int) -> None:
    draft = None
    definition = next((name for name in found if name.startswith("definition.")), None)
    if definition is not None and "name" in found:
        draft = _draft(captured, found[definition][0], found["name"][0], definition, pattern)
        if draft.pattern == pattern and "body" in found:
            draft.body = found["body"][0].start_byte
    elif "of" in found:
        draft = captured.drafts.setdefault(_span(found["of"][0]), _unnamed(found["of"][0]))
    if draft is not None and "whole" in found:
        draft.whole = min(draft.whole, found["whole"][0].start_byte)
    for name, nodes in found.items():
        if name in _FACETS:
            facets = captured.loose if draft is None else draft.facets
            facets.extend((name, _span(node)) for node in nodes)
        elif name in _SPANS:
            captured.spans[name].extend(map(_span, nodes))
    if "upto" in found:
        start, _ = captured.spans["call"].pop()
        captured.spans["call"].append((start, found["upto"][0].end_byte))
    if "package" in found:
        captured.package = _span(found["package"][0])
    bound = next((name for name in _BOUND if name in found), None)
    if bound:
        kind, value = found.get("binding.type"), found.get("binding.value")
        captured.bindings.append(
            (
                _span(found[bound][0]),
                _span(kind[0]) if kind else None,
                _span(value[0]) if value else None,
                bound,
            )
        )


def _draft(captured: Captured, node: Node, name: Node, definition: str, pattern: int) -> Draft:
    span = _span(node)
    draft = captured.drafts.setdefault(span, _unnamed(node))
    if draft.name is None or pattern < draft.pattern:
        draft.pattern = pattern
        body = node.child_by_field_name("body")
        draft.kind = _KINDS[definition.removeprefix("definition.")]
        draft.name = _span(name)
        draft.body = body.start_byte if body is not None else span[1]
    elif pattern == draft.pattern and name.start_byte > draft.name[0]:
        return _further(captured, draft, name)
    return draft


def _further(captured: Captured, first: Draft, name: Node) -> Draft:
    """One more of the names that a declaration declares: the first has what stands before it."""
    start, end = _span(name)
    further = captured.drafts.setdefault((start, end), _unnamed(name))
    if further.name is None:
        before = first.last or first
        further.kind, further.name, further.pattern = first.kind, (start, end), first.pattern
        further.end = further.body = max(before.end, end)
        before.end = min(before.end, start)
        before.body = min(before.body, before.end)
        first.last = further
    return further


def _unnamed(node: Node) -> Draft:
    start, end = _span(node)
    return Draft(start, end, code_pb2.SYMBOL_KIND_UNSPECIFIED, None, end, start, -1)


def _span(node: Node) -> Span:
    return node.start_byte, node.end_byte
