"""What a file says: its symbols, imports, bindings and uses of names.

A function of path, language and content alone, so that what is kept of a file holds for as long
as its content does. Nothing here looks at other files; what a name means is told when the facts of
all files are together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from muniment.code.capturing import Captured, capture
from muniment.code.chains import NO_NAME, Chains, chain_of_type
from muniment.code.hashing import SyntaxHasher
from muniment.code.languages import Grammar, load
from muniment.code.limits import FILE_MENTIONS_LIMIT
from muniment.code.source import Source, Span, places
from muniment.code.symbols import SymbolTable, build_symbols
from muniment.v1 import code_pb2
from muniment.v1.store_pb2 import CodeFacts

__all__ = ["READER_VERSION", "read"]

READER_VERSION = 1
"""Counts the changes of what is read of the same content."""

_DOT = ord(".")
_BOM = b"\xef\xbb\xbf"
_OWN_CHAIN = re.compile(
    rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:(?:\??\.|::)[A-Za-z_\x80-\xff][\w\x80-\xff]*)*"
)
_ASSIGNED = re.compile(rb"\s*=(?!=)")
_KEY = re.compile(rb"\s*:")
_BEFORE_BYTES = 100
_NAMES = re.compile(r"(?!_\Z)[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def read(
    path: str, language: str, content: bytes
) -> tuple[CodeFacts, code_pb2.FileCondition.ValueType]:
    """What a file says, and whether it could be read as a whole.

    Args:
        path: Of the file, relative to its tree's root.
        language: One of `languages.LANGUAGES`.
        content: As it is on disk.
    """
    grammar = load(language)
    content = content.removeprefix(_BOM).replace(b"\r\n", b"\n")
    try:
        content.decode()
    except UnicodeDecodeError:
        # Predicates of queries are asked of texts only.
        content = content.decode(errors="replace").encode()
    tree = grammar.parser.parse(content)
    captured = capture(grammar.query, tree.root_node)
    is_whole = not tree.root_node.has_error
    del tree
    reading = _Reading(grammar, content, captured)
    is_whole = reading.write() and is_whole
    condition = (
        code_pb2.FILE_CONDITION_PARSED if is_whole else code_pb2.FILE_CONDITION_PARSED_IN_PART
    )
    return reading.facts, condition


class _Reading:
    """One file on its way from captures to facts."""

    def __init__(self, grammar: Grammar, content: bytes, captured: Captured) -> None:
        self.facts = CodeFacts()
        self._rules = grammar.rules
        self._captured = captured
        spans = captured.spans
        self._source = Source(content, spans["comment"], spans["text"], spans["hole"])
        self._chains = Chains(
            self._source, self._rules.prefixes, self._rules.passed_over, self._rules.maker
        )
        self._symbols = SymbolTable([], 0)
        self._locals: set[tuple[int, str]] = set()

    def write(self) -> bool:
        """Fills `facts`; whether all of the file is in it."""
        hasher = SyntaxHasher(self._source, self._rules.layout, self._captured.spans["block"])
        self._symbols = build_symbols(
            self._captured, self._source, self._chains, self._rules, hasher
        )
        self.facts.symbols.extend(self._symbols.messages)
        if self._captured.package is not None:
            self.facts.package = self._chains.chain(*self._captured.package)
        self._write_imports()
        self._write_bindings()
        return self._write_mentions() and not self._symbols.left_out

    def _write_imports(self) -> None:
        passed = 0
        for start, end in self._captured.spans["import"]:
            if end <= passed:
                continue
            passed = end
            for one in self._rules.imports(self._source, start, end):
                self.facts.imports.add(
                    local=one.local,
                    module=one.module,
                    name=one.name,
                    is_star=one.is_star,
                    line=self._source.line_of(one.at),
                    scope=self._symbols.binding_scope_at(one.at),
                    is_exported=one.is_exported,
                )

    def _write_bindings(self) -> None:
        known: set[tuple[int, str, str, bool]] = set()
        typed: set[Span] = set()
        own = self._own_names()
        # What has a declared type is not told by its value.
        for name, kind, value, role in sorted(
            self._captured.bindings, key=lambda one: one[1] is None
        ):
            if self._is_within("import", name[0]):
                continue
            chain = ""
            if kind is not None:
                chain = chain_of_type(self._source.text(*kind), self._rules.wrappers)
            if chain:
                typed.add(name)
                self._bind(known, own, name, chain, is_type=True, role=role)
            elif name not in typed:
                chain = self._chains.chain(*value) if value is not None else NO_NAME
                self._bind(known, own, name, chain, is_type=False, role=role)
        for span in self._captured.spans["local"]:
            self._bind(known, own, span, NO_NAME, is_type=False)
        for scope, bound, chain, is_type in sorted(known):
            self.facts.bindings.add(scope=scope, name=bound, value=chain, is_type=is_type)

    def _bind(
        self,
        known: set[tuple[int, str, str, bool]],
        own: set[str],
        span: Span,
        value: str,
        *,
        is_type: bool,
        role: str = "",
    ) -> None:
        first, dot, rest = self._chains.chain(*span).partition(".")
        if value.startswith(NO_NAME):
            value = NO_NAME
        if value == NO_NAME and (dot or (self._rules.names_are_own and first not in own)):
            return
        scope = self._symbols.binding_scope_at(span[0])
        if role == "binding.parameter" and not self._symbols.is_function(scope):
            # Of a type, or of what is declared only.
            return
        is_field = role == "binding.field"
        if dot or is_field:
            scope = self._symbols.type_around(scope)
            field = first if is_field else rest if first in self._rules.selves else ""
            if field.isidentifier() and scope:
                known.add((scope, field, value, is_type))
            return
        if self._symbols.is_named_at(scope, span[0]):
            return
        self._locals.add((scope, first))
        if value in self._rules.nothing or first == NO_NAME:
            return
        if value != NO_NAME or (first in own and self._symbols.is_function(scope)):
            known.add((scope, first, value, is_type))

    def _is_within(self, name: str, offset: int) -> bool:
        """Whether what is captured under that name is around the place."""
        spans = self._captured.spans[name]
        if not spans or offset >= spans[-1][1]:
            return False
        nearest = bisect_right(spans, (offset, len(self._source.content))) - 1
        return nearest >= 0 and offset < spans[nearest][1]

    def _plain_names(self) -> set[str]:
        """Names that mean something by themselves, of what the file defines or imports."""
        symbols = self.facts.symbols
        return {one.local for one in self.facts.imports} | {
            one.name
            for index, one in enumerate(symbols)
            if not self._symbols.is_type(self._symbols.parents[index])
        }

    def _own_names(self) -> set[str]:
        """Names that the file defines at its top or imports."""
        return {one.local for one in self.facts.imports} | {
            one.name for one in self.facts.symbols if not one.parent
        }

    def _write_mentions(self) -> bool:
        found: set[tuple[int, int, str, int]] = set()
        for start, end in self._captured.spans["call"]:
            # Heads of definitions may be written like calls, and so may attributes.
            if start in self._symbols.named_at or self._is_within("attribute", start):
                continue
            chain = self._chains.chain(start, end)
            if self._rules.maker:
                chain = chain.removesuffix("()")
            if chain != NO_NAME:
                found.add((start, end, chain, code_pb2.EDGE_KIND_CALLS))
        called = {start: end for start, end, _, _ in sorted(found)}
        found.update(self._symbols.inheritance)
        called.update((start, end) for start, end, _, _ in self._symbols.inheritance)
        found.update(self._references(called))
        listed = sorted(found)
        kept = listed[:FILE_MENTIONS_LIMIT]
        mentions = self.facts.mentions
        chains = sorted({chain for _, _, chain, _ in kept})
        number = {chain: index for index, chain in enumerate(chains)}
        mentions.chains.extend(chains)
        mentions.chain.extend(number[chain] for _, _, chain, _ in kept)
        mentions.kind.extend(kind for _, _, _, kind in kept)  # type: ignore[misc]
        mentions.scope.extend(self._symbols.scopes_at([start for start, _, _, _ in kept]))
        ends = places([max(end - 1, 0) for _, end, _, _ in kept])
        mentions.line.extend(self._source.lines_of(ends).tolist())
        return len(kept) == len(listed)

    def _references(self, called: dict[int, int]) -> Iterable[tuple[int, int, str, int]]:
        kind = code_pb2.EDGE_KIND_REFERENCES
        passed = 0
        ends = frozenset(called.values())
        # Of those that begin at one place, the longest.
        for start, end in sorted(
            self._captured.spans["reference"], key=lambda one: (one[0], -one[1])
        ):
            if self._is_within("import", start):
                continue
            if end <= passed or self._symbols.is_name_within(start, end):
                continue
            passed = end
            if end in ends or called.get(start, 0) >= end:
                continue
            chain = self._chains.chain(start, end)
            if not _NAMES.fullmatch(chain):
                continue
            if (self._symbols.scope_at(start), chain) not in self._locals:
                yield start, end, chain, kind
        if self._rules.names_are_own:
            for start, end in self._own_references(called):
                yield start, end, self._chains.chain(start, end), kind

    def _own_references(self, called: dict[int, int]) -> Iterable[Span]:
        """Uses of names that the file defines or imports, wherever they stand in its code."""
        masked = self._source.masked
        plain = {name.encode(errors="replace") for name in self._plain_names()}
        bound = {one.name for one in self.facts.bindings} | self._rules.selves
        roots = plain | {name.encode(errors="replace") for name in bound}
        imports = self._captured.spans["import"]
        import_starts = [start for start, _ in imports]
        named = self._symbols.named_at
        for found in _OWN_CHAIN.finditer(masked):
            text = found.group()
            first, dot, _ = text.partition(b"." if b"." in text else b"::")
            if first not in (roots if dot else plain):
                continue
            start, end = found.span()
            if called.get(start, 0) >= end or start in named or self._is_no_use(start, end):
                continue
            nearest = bisect_right(import_starts, start) - 1
            if nearest < 0 or start >= imports[nearest][1]:
                yield start, end

    def _is_no_use(self, start: int, end: int) -> bool:
        """Whether a name is assigned to, is a key, or goes on from something else."""
        masked = self._source.masked
        if start and masked[start - 1] == _DOT:
            return True
        is_assigned = _ASSIGNED.match(masked, end) is not None
        is_key = self._rules.has_bare_keys and _KEY.match(masked, end) is not None
        if not is_assigned and not is_key:
            return False
        before = masked[max(0, start - _BEFORE_BYTES) : start]
        if is_key and before.rstrip().endswith((b"{", b",")):
            return True
        # What stands between a colon and an equals sign is a type.
        return is_assigned and not before.rstrip(b" ").endswith(b":")
