"""What a map has to know of each node of the graph: its file, what it stands in, its weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muniment.code.graph import CodeGraph, Places
from muniment.code.ranking import Floats, Integers
from muniment.code.roles import Role, is_test, role_of
from muniment.v1 import code_pb2, store_pb2

__all__ = ["MapNodes"]

_ROLE_WEIGHTS = {
    Role.SOURCE: 1.0,
    Role.TEST: 0.02,
    Role.MIGRATION: 0.01,
    Role.GENERATED: 0.02,
    Role.VENDORED: 0.02,
    Role.ASIDE: 0.1,
}

_TEST_STANDING = 0.2
"""Tests are not shown, and yet matter: nobody else in its own tree calls a library from outside."""

_TEXT_LANGUAGES = frozenset({"markdown", "json", "yaml", "toml", "html", "css"})
_TEXT_WEIGHT = 0.02

_KIND_WEIGHTS: dict[int, float] = {
    code_pb2.SYMBOL_KIND_FUNCTION: 1.0,
    code_pb2.SYMBOL_KIND_METHOD: 1.0,
    code_pb2.SYMBOL_KIND_CLASS: 1.0,
    code_pb2.SYMBOL_KIND_STRUCT: 1.0,
    code_pb2.SYMBOL_KIND_ENUM: 1.0,
    code_pb2.SYMBOL_KIND_TRAIT: 1.0,
    code_pb2.SYMBOL_KIND_INTERFACE: 1.0,
    code_pb2.SYMBOL_KIND_TYPE: 0.5,
    code_pb2.SYMBOL_KIND_MACRO: 1.0,
    code_pb2.SYMBOL_KIND_MODULE: 0.1,
    code_pb2.SYMBOL_KIND_CONSTANT: 0.05,
    code_pb2.SYMBOL_KIND_FIELD: 0.05,
    code_pb2.SYMBOL_KIND_OTHER: 0.1,
}

_CALLABLES = frozenset({code_pb2.SYMBOL_KIND_FUNCTION, code_pb2.SYMBOL_KIND_METHOD})

_INNER_WEIGHT = 0.1
"""Of what stands inside of a function."""

_PRIVATE_WEIGHT = 0.3
_SPECIAL_WEIGHT = 0.3
"""Of Python's `__names__`, which the language calls; but `__init__`, which says how to make one."""


@dataclass(frozen=True)
class MapNodes:
    """The nodes of one state of a graph, column by column."""

    places: Places
    paths: Sequence[str]
    files: Integers
    """Index of the node's path."""
    parents: Integers
    """Node of the symbol that it stands in; -1 at the top, and for files."""
    _own: Floats
    """How much of a node's score counts, by its kind and name; 0 for files."""
    _of_files: Floats
    """The same for each file, by what it is for."""
    _standings: Floats
    """Of each file."""

    @classmethod
    def of(cls, graph: CodeGraph, places: Places) -> MapNodes:
        """Those of the graph as it is; `places` are sorted, a file before what it has."""
        paths = graph.paths
        own, parents = [0.0] * len(places), [-1] * len(places)
        for path in paths:
            first = places.first(path) + 1
            inner = [False]
            for at, symbol in enumerate(graph.facts(path).symbols, first):
                within = inner[symbol.parent]
                inner.append(within or symbol.kind in _CALLABLES)
                own[at] = _weight(symbol) * (_INNER_WEIGHT if within else 1.0)
                if symbol.parent:
                    parents[at] = first + symbol.parent - 1
        starts = np.array([places.first(path) for path in paths], np.int64)
        of_files = np.array([_file_weight(path, graph.language(path)) for path in paths])
        tests = np.array([is_test(path) for path in paths], bool)
        return cls(
            places=places,
            paths=paths,
            files=np.repeat(np.arange(len(paths)), np.diff(starts, append=len(places))),
            parents=np.array(parents, np.int64),
            _own=np.array(own),
            _of_files=of_files,
            _standings=np.where(tests, _TEST_STANDING, of_files),
        )

    def in_files(self, paths: frozenset[str]) -> Integers:
        """The nodes of these files."""
        chosen = [index for index, path in enumerate(self.paths) if path in paths]
        return np.flatnonzero(np.isin(self.files, chosen)) if chosen else np.empty(0, np.int64)

    def standing(self) -> Floats:
        """How much each node matters before anybody mentions it."""
        standing: Floats = self._standings[self.files]
        return standing

    def weights(self, chosen: Integers) -> Floats:
        """How much of a node's score counts; what the files of `chosen` are for does not matter."""
        of_files = self._of_files.copy()
        of_files[self.files[chosen]] = 1.0
        weights: Floats = self._own * of_files[self.files]
        return weights


def _file_weight(path: str, language: str) -> float:
    return _ROLE_WEIGHTS[role_of(path)] * (_TEXT_WEIGHT if language in _TEXT_LANGUAGES else 1.0)


def _weight(symbol: store_pb2.CodeSymbol) -> float:
    weight = _KIND_WEIGHTS.get(symbol.kind, 0.0)
    name = symbol.name
    if not name.startswith("_"):
        return weight
    if name.startswith("__") and name.endswith("__"):
        return weight if name == "__init__" else weight * _SPECIAL_WEIGHT
    return weight * _PRIVATE_WEIGHT
