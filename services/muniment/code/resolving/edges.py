"""The edges of one file: what its mentions and imports mean, as rows of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from muniment.code.limits import CHAIN_PARTS_LIMIT, MEANINGS_LIMIT
from muniment.code.resolving.files import File
from muniment.code.resolving.names import Names, Thing
from muniment.code.resolving.tree import Tree
from muniment.code.resolving.values import Values
from muniment.v1.code_pb2 import EdgeKind

__all__ = ["BY_NAME", "CANDIDATE", "CONTINUED", "ROW", "Resolver"]

ROW = 5
"""A row: scope, kind, line, flags, target."""

CANDIDATE, CONTINUED, BY_NAME = 1, 2, 4
"""Flags: one of several that could be meant; a further target of the edge before; the target is
the number of a method's name, whose receiver nobody knows, and not of a symbol."""


_CALLS = int(EdgeKind.EDGE_KIND_CALLS)
_IMPORTS = int(EdgeKind.EDGE_KIND_IMPORTS)

_Edges = dict[tuple[int, int, int, tuple[int, ...]], int]
"""Scope, kind, flags and targets, with the first line."""


class Resolver:
    """Resolves files of a tree that does not change meanwhile."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._names = Names(tree)
        self._values = Values(self._names)

    def resolve(self, file: File) -> None:
        """Find the file's edges anew, and note what they depend on."""
        self._names.begin(file)
        edges: _Edges = {}
        file.unresolved = 0
        for (scope, kind, chain), line in _first_lines(file).items():
            _enter(file, edges, (scope, kind, *self._meant_once(file, scope, kind, chain)), line)
        for entry in range(file.first_import, file.first_binding):
            brought = self._numbers(self._names.imported(file, entry))
            imports = (file.scopes[entry], _IMPORTS, *brought)
            _enter(file, edges, imports, file.facts.imports[entry - file.first_import].line)
        rows = array("i")
        for (scope, number, flags, targets), line in edges.items():
            for place, target in enumerate(targets):
                rows.extend((scope, number, line, flags | (CONTINUED if place else 0), target))
        file.rows = rows
        self._tree.note_reads(file, self._names.trace)

    def _meant_once(
        self, file: File, scope: int, kind: int, chain: str
    ) -> tuple[int, tuple[int, ...]]:
        """Flags and targets of a mention, found once for all scopes where they are the same."""
        home = self._values.home(file, scope, chain)
        is_call = kind == _CALLS
        key = ("meant", home, chain, is_call)
        return self._names.once(file, key, lambda: self._meant(file, home, chain, is_call))

    def _meant(
        self, file: File, scope: int, chain: str, is_call: bool
    ) -> tuple[int, tuple[int, ...]]:
        things = None
        if chain.count(".") < CHAIN_PARTS_LIMIT:
            things = self._values.things(file, scope, chain)
        if not things:
            if things is not None:
                return 0, ()
            _, dot, name = chain.rpartition(".")
            if is_call and dot and _is_telling(name):
                return CANDIDATE | BY_NAME, (self._tree.text_number(name),)
            return 0, ()
        return self._numbers(self._definitions(things))

    def _definitions(self, things: Iterable[Thing]) -> Iterable[Thing]:
        """The things, with what variables stand for in their place."""
        found: dict[Thing, None] = {}
        for thing in things:
            where, entry = thing
            if isinstance(where, File) and entry >= where.first_import:
                found.update(dict.fromkeys(self._values.types(thing)))
            else:
                found[thing] = None
        return found

    def _numbers(self, things: Iterable[Thing]) -> tuple[int, tuple[int, ...]]:
        found: dict[tuple[File, int], object] = {}
        for where, entry in things:
            if isinstance(where, File) and entry < where.first_import:
                name = where.symbol(entry).name if entry >= 0 else ""
                found[where, entry] = (where, where.scopes[entry] if entry >= 0 else -1, name)
        if len(found) > MEANINGS_LIMIT:
            return 0, ()
        if len(found) == 1:
            ((file, entry),) = found
            return 0, (file.ids[entry + 1],)
        numbers = tuple(
            file.ids[entry + 1]
            for file, entry in sorted(found, key=lambda one: (one[0].path, one[1]))
        )
        # Definitions of one name in one place, such as overloads, are one and the same.
        return (CANDIDATE if len(set(found.values())) > 1 else 0), numbers


def _first_lines(file: File) -> dict[tuple[int, int, str], int]:
    """Each use once, as scope, kind and chain, with its first line."""
    mentions = file.facts.mentions
    chains = list(mentions.chains)
    known = file.first_import
    first: dict[tuple[int, int, str], int] = {}
    for chain, kind, scope, line in zip(
        mentions.chain, mentions.kind, mentions.scope, mentions.line, strict=True
    ):
        # A scope that is none of the file's is its top: facts come from another process.
        key = (scope if scope <= known else 0, kind, chains[chain])
        if first.get(key, line) >= line:
            first[key] = line
    return first


def _is_telling(name: str) -> bool:
    return name.isidentifier() and not name.startswith("__")


def _enter(
    file: File,
    edges: _Edges,
    key: tuple[int, int, int, tuple[int, ...]],
    line: int,
) -> None:
    if not key[3]:
        file.unresolved += 1
    elif edges.get(key, line) >= line:
        edges[key] = line
