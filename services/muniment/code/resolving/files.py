"""A file's facts, laid out so that a name is found in them at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from sys import intern

from muniment.code.resolving.rules import location_of, rules_of
from muniment.v1.code_pb2 import SymbolKind
from muniment.v1.store_pb2 import CodeBinding, CodeFacts, CodeImport, CodeSymbol

__all__ = ["EXTENDS", "FILE", "FUNCTIONS", "METHOD", "MODULE", "STAR", "TYPE", "TYPES", "File"]

EXTENDS = "extends "
"""Before the name of a type: what is added to it."""

METHOD = int(SymbolKind.SYMBOL_KIND_METHOD)
MODULE = int(SymbolKind.SYMBOL_KIND_MODULE)
OTHER = int(SymbolKind.SYMBOL_KIND_OTHER)
TYPE = int(SymbolKind.SYMBOL_KIND_TYPE)
"""Kinds of symbols, as numbers that are at hand at once."""


FILE = -1
"""The entry that stands for the file itself."""

STAR = "*"
"""The name under which a file's star imports are entered."""

TYPES = frozenset(
    {
        SymbolKind.SYMBOL_KIND_CLASS,
        SymbolKind.SYMBOL_KIND_STRUCT,
        SymbolKind.SYMBOL_KIND_ENUM,
        SymbolKind.SYMBOL_KIND_TRAIT,
        SymbolKind.SYMBOL_KIND_INTERFACE,
    }
)
"""Kinds of symbols that have members."""

FUNCTIONS = frozenset(
    {
        SymbolKind.SYMBOL_KIND_FUNCTION,
        SymbolKind.SYMBOL_KIND_METHOD,
        SymbolKind.SYMBOL_KIND_MACRO,
    }
)
"""Kinds of symbols that are called."""

_SINGLE = [(number,) for number in range(2048)]
_NONE: tuple[int, ...] = ()


class File:
    """One file of a tree.

    Its *entries* are numbered: first its symbols, then its imports, then its bindings. A *scope*
    is one more than the symbol's index, 0 for the file's top.
    """

    __slots__ = (
        "_names",
        "extensions",
        "facts",
        "first_binding",
        "first_import",
        "folder",
        "ids",
        "kinds",
        "language",
        "location",
        "path",
        "readers",
        "reads",
        "rows",
        "rules",
        "scopes",
        "unresolved",
        "wants",
    )

    def __init__(self, path: str, language: str, facts: CodeFacts) -> None:
        self.path = path
        self.folder = path.rpartition("/")[0]
        self.language = language
        self.rules = rules_of(language)
        self.location = location_of(path, self.rules)
        self.ids = array("i")
        """Numbers of the file and its symbols, by one more than their index."""
        self.rows = array("i")
        self.unresolved = 0
        self.reads: dict[File, tuple[str, ...]] = {}
        self.readers: set[File] = set()
        self.wants: tuple[str, ...] = ()
        self.take(facts)

    def take(self, facts: CodeFacts) -> None:
        """Hold other facts from now on."""
        self.facts = facts
        symbols, imports, bindings = facts.symbols, facts.imports, facts.bindings
        self.first_import = len(symbols)
        self.first_binding = self.first_import + len(imports)
        # A scope that is none of the file's is its top: facts come from another process.
        known = len(symbols)
        self.extensions: dict[int, str] = {}
        """Entries that add to a type elsewhere, with the type's last name."""
        for entry, symbol in enumerate(symbols):
            if symbol.receiver:
                self.extensions[entry] = symbol.receiver.rpartition(".")[2]
        self.kinds = array("b", [one.kind for one in symbols])
        scopes = [one.parent if one.parent <= i else 0 for i, one in enumerate(symbols)]
        scopes += [one.scope if one.scope <= known else 0 for one in imports]
        scopes += [one.scope if one.scope <= known else 0 for one in bindings]
        self.scopes = array("i", scopes)
        self._names: dict[str, tuple[int, ...]] = {}
        names = [one.name for one in symbols]
        names += [STAR if one.is_star else one.local for one in imports]
        names += [one.name for one in bindings]
        for entry, name in enumerate(names):
            if before := self._names.get(name):
                self._names[name] = (*before, entry)
            elif name:
                self._names[intern(name)] = _SINGLE[entry] if entry < len(_SINGLE) else (entry,)

    def entries(self, name: str) -> tuple[int, ...]:
        """The entries of that name, in any scope, in the order of their numbers."""
        return self._names.get(name, _NONE)

    def names(self) -> Iterator[str]:
        """Every name that has an entry."""
        return iter(self._names)

    def entries_in(self, name: str, scope: int) -> list[int]:
        """The entries of that name in that very scope."""
        scopes = self.scopes
        return [entry for entry in self._names.get(name, _NONE) if scopes[entry] == scope]

    def defined_in(self, name: str, scope: int) -> list[int]:
        """As `entries_in`, without what only adds to a type of that name."""
        found = self.entries_in(name, scope)
        if found and self.extensions:
            other = [one for one in found if one in self.extensions and self.kinds[one] == OTHER]
            found = [one for one in found if one not in other]
        return found

    def is_symbol(self, entry: int) -> bool:
        """Whether the entry is a symbol, not the file, an import or a binding."""
        return 0 <= entry < self.first_import

    def is_type(self, entry: int) -> bool:
        """Whether the entry is a symbol that has members."""
        return 0 <= entry < self.first_import and self.kinds[entry] in TYPES

    def symbol(self, entry: int) -> CodeSymbol:
        """The symbol of that entry."""
        return self.facts.symbols[entry]

    def imported(self, entry: int) -> CodeImport | None:
        """The import of that entry; None where it is none."""
        if self.first_import <= entry < self.first_binding:
            return self.facts.imports[entry - self.first_import]
        return None

    def binding(self, entry: int) -> CodeBinding:
        """The binding of that entry."""
        return self.facts.bindings[entry - self.first_binding]

    def owner_around(self, scope: int) -> int | None:
        """The innermost type, or addition to a type, that the scope stands in, or is."""
        while scope:
            if self.kinds[scope - 1] in TYPES or scope - 1 in self.extensions:
                return scope - 1
            scope = self.scopes[scope - 1]
        return None

    def meanings(self) -> dict[str, list[tuple[object, ...]]]:
        """What others may read of the file, name by name: equal where nothing changed for them.

        Symbols count by their numbers, which outlive a change of their place.
        """
        ids, scopes = self.ids, self.scopes
        found: dict[str, list[tuple[object, ...]]] = {}
        for index, one in enumerate(self.facts.symbols):
            row: tuple[object, ...] = (ids[index + 1], ids[scopes[index]], one.kind, one.type)
            if one.bases or one.interfaces:
                row += (tuple(one.bases), tuple(one.interfaces))
            found.setdefault(one.name, []).append((*row, one.is_property, one.is_static))
            if index in self.extensions:
                added = (ids[index + 1], one.name, one.receiver, tuple(one.bases))
                found.setdefault(f"{EXTENDS}{self.extensions[index]}", []).append(added)
        for entry, this in enumerate(self.facts.imports, self.first_import):
            name = STAR if this.is_star else this.local
            made = (ids[scopes[entry]], this.module, this.name, this.is_exported)
            found.setdefault(name, []).append(made)
        for entry, that in enumerate(self.facts.bindings, self.first_binding):
            bound = (ids[scopes[entry]], that.value, that.is_type)
            found.setdefault(that.name, []).append(bound)
        return found
