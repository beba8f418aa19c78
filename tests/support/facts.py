"""What a file says, as lines that stand beside its source in a test."""

from __future__ import annotations

from textwrap import dedent

from muniment.code.reading import read
from muniment.v1 import code_pb2
from muniment.v1.store_pb2 import CodeFacts

__all__ = ["Said", "hashes", "said"]

_VERBS = {
    code_pb2.EDGE_KIND_CALLS: "calls",
    code_pb2.EDGE_KIND_INHERITS: "inherits",
    code_pb2.EDGE_KIND_IMPLEMENTS: "implements",
    code_pb2.EDGE_KIND_REFERENCES: "names",
}


class Said:
    """The facts of a source, each kind as sorted lines of text."""

    def __init__(self, facts: CodeFacts, condition: code_pb2.FileCondition.ValueType) -> None:
        self.facts = facts
        self.condition = condition

    @property
    def symbols(self) -> list[str]:
        """`line kind qualified.name | signature | doc`, and what else is said of it."""
        lines = []
        for index, symbol in enumerate(self.facts.symbols):
            kind = code_pb2.SymbolKind.Name(symbol.kind).removeprefix("SYMBOL_KIND_").lower()
            line = f"{symbol.line}-{symbol.end_line} {kind} {self.name(index + 1)}"
            more = {
                "bases": ", ".join(symbol.bases),
                "interfaces": ", ".join(symbol.interfaces),
                "type": symbol.type,
                "receiver": symbol.receiver,
                "doc": symbol.doc,
            }
            line += "".join(f" | {key}: {value}" for key, value in more.items() if value)
            line += " | property" if symbol.is_property else ""
            line += " | static" if symbol.is_static else ""
            lines.append(line)
        return lines

    @property
    def signatures(self) -> list[str]:
        return [symbol.signature for symbol in self.facts.symbols]

    @property
    def imports(self) -> list[str]:
        """`line scope: local <- module : name`."""
        return [
            f"{one.line} {self.name(one.scope)}: {one.local or '_'} <- {one.module}"
            + (f" : {one.name}" if one.name else "")
            + (" *" if one.is_star else "")
            + (" exported" if one.is_exported else "")
            for one in self.facts.imports
        ]

    @property
    def bindings(self) -> list[str]:
        """`scope: name : type`, or `scope: name = expression`."""
        return [
            f"{self.name(one.scope)}: {one.name} {':' if one.is_type else '='} {one.value}"
            for one in self.facts.bindings
        ]

    @property
    def mentions(self) -> list[str]:
        """`line scope verb chain`."""
        said = self.facts.mentions
        return [
            f"{line} {self.name(scope)} {_VERBS[kind]} {said.chains[chain]}"
            for chain, kind, scope, line in zip(
                said.chain, said.kind, said.scope, said.line, strict=True
            )
        ]

    def name(self, scope: int) -> str:
        """The names of what a symbol stands in, and its own; `.` for the file."""
        names: list[str] = []
        while scope:
            symbol = self.facts.symbols[scope - 1]
            assert symbol.parent < scope, "a parent stands before its members"
            names.insert(0, symbol.name)
            scope = symbol.parent
        return ".".join(names) or "."


def said(language: str, source: str) -> Said:
    """What an indented source says."""
    return Said(*read("tried", language, dedent(source).lstrip("\n").encode()))


def hashes(language: str, source: str) -> dict[str, int]:
    """The hash of each symbol of an indented source."""
    facts = said(language, source)
    return {
        facts.name(index + 1): symbol.ast_hash for index, symbol in enumerate(facts.facts.symbols)
    }
