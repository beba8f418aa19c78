"""The graph of a tree: definitions, and the edges between them.

It holds the facts of the tree's files and keeps the edges as what these files say: whatever the
way to them, the same files have the same edges. One thread at a time may use it.
"""

from __future__ import annotations

import difflib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import overload

import numpy as np
import numpy.typing as npt

from muniment.code.limits import MEANINGS_LIMIT
from muniment.code.resolving.edges import BY_NAME, CANDIDATE, CONTINUED, ROW, Resolver
from muniment.code.resolving.files import FILE, File
from muniment.code.resolving.tree import Tree, last_part
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind, SymbolKind
from muniment.v1.store_pb2 import CodeFacts, CodeSymbol

__all__ = ["CodeGraph", "Edge", "EdgeCounts", "Found", "GraphArrays", "Place", "Places"]

_NEAR_LIMIT = 8
_NEAR_ENOUGH = 0.7
_NEAR_LENGTH = 3

_RESOLVED = EdgeCertainty.EDGE_CERTAINTY_RESOLVED
_CANDIDATES = EdgeCertainty.EDGE_CERTAINTY_CANDIDATES

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """A definition: the index of a symbol in its file's facts, or -1 for the file itself."""

    path: str
    index: int


@dataclass(frozen=True, slots=True)
class Edge:
    """What one definition uses. Uses without a target in the tree have no edge."""

    scope_index: int
    """Index of the symbol that it goes out from, -1 for the file."""
    kind: EdgeKind.ValueType
    certainty: EdgeCertainty.ValueType
    targets: tuple[Place, ...]
    """One; several where they could be meant, or where one name is defined several times."""
    line: int
    """The first that says so."""


@dataclass(frozen=True, slots=True)
class Found:
    """Definitions of a name."""

    places: tuple[Place, ...]
    is_exact: bool


@dataclass(frozen=True, slots=True)
class EdgeCounts:
    """How many edges there are, and uses that have none."""

    resolved: int
    candidates: int
    unresolved: int


class Places(Sequence[Place]):
    """All files and symbols in the order of path and index; their numbers are their positions."""

    def __init__(self, paths: Sequence[str], sizes: Sequence[int]) -> None:
        self._paths = paths
        self._bases = [0]
        for size in sizes:
            self._bases.append(self._bases[-1] + size)
        self._files = dict(zip(paths, self._bases, strict=False))

    def __len__(self) -> int:
        return self._bases[-1]

    @overload
    def __getitem__(self, position: int) -> Place: ...
    @overload
    def __getitem__(self, position: slice) -> list[Place]: ...
    def __getitem__(self, position: int | slice) -> Place | list[Place]:
        if isinstance(position, slice):
            return [self[one] for one in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        file = bisect_right(self._bases, position) - 1
        return Place(self._paths[file], position - self._bases[file] - 1)

    def number(self, place: Place) -> int:
        """The position of a place."""
        return self._files[place.path] + place.index + 1

    def first(self, path: str) -> int:
        """The position of a file; its symbols follow it."""
        return self._files[path]


@dataclass(frozen=True, slots=True)
class GraphArrays:
    """The graph as numbers. An edge with several targets is there once for each."""

    places: Places
    sources: Numbers
    """Positions in `places`; this and the others are of one length."""
    targets: Numbers
    kinds: Numbers
    """As EdgeKind."""
    certainties: Numbers
    """As EdgeCertainty."""
    rows: Numbers
    """Which edge of its file it is, for `edges_to`."""


class CodeGraph:
    """The files of one tree and the edges between their definitions."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._dirty: set[File] = set()
        self._paths: tuple[str, ...] | None = None
        self._arrays: GraphArrays | None = None
        self._incoming: tuple[Numbers, Numbers] | None = None
        self._methods: dict[tuple[str, int], tuple[int, ...]] = {}

    def replace(self, changes: Mapping[str, tuple[str, CodeFacts] | None]) -> None:
        """Take in files, as path -> (language, facts), and remove those that are None.

        What this changes for others is resolved anew when it is next asked for, or by `settle`.
        Facts belong to the graph from then on.
        """
        tree = self._tree
        for path in sorted(changes):
            change = changes[path]
            if change is not None:
                self._dirty |= tree.put(path, *change)
            elif path in tree.files:
                file = tree.files[path]
                self._dirty |= tree.drop(path)
                self._dirty.discard(file)
        # What is no longer a file of the tree was exchanged by another of the same path.
        self._dirty = {one for one in self._dirty if tree.files.get(one.path) is one}
        self._paths = self._arrays = self._incoming = None
        self._methods.clear()

    def settle(self) -> None:
        """Resolve what changes made necessary. Every question about edges does so first."""
        if self._dirty:
            resolver = Resolver(self._tree)
            for file in sorted(self._dirty, key=lambda one: one.path):
                resolver.resolve(file)
            self._dirty.clear()

    @property
    def paths(self) -> Sequence[str]:
        """The paths of all files, sorted."""
        if self._paths is None:
            self._paths = tuple(sorted(self._tree.files))
        return self._paths

    def language(self, path: str) -> str:
        """The language that the file was read as."""
        return self._tree.files[path].language

    def facts(self, path: str) -> CodeFacts:
        """What the file says."""
        return self._tree.files[path].facts

    def symbol(self, place: Place) -> CodeSymbol:
        """The symbol at a place; the place is none of a file itself."""
        return self._tree.files[place.path].symbol(place.index)

    def parent(self, place: Place) -> Place:
        """What a symbol stands in: another symbol, or the file."""
        return Place(place.path, self._tree.files[place.path].scopes[place.index] - 1)

    def members(self, place: Place, name: str) -> list[Place]:
        """The symbols of that name right in a place."""
        file = self._tree.files[place.path]
        entries = file.entries_in(name, place.index + 1)
        return [Place(place.path, entry) for entry in entries if file.is_symbol(entry)]

    def qualified_name(self, place: Place) -> str:
        """`path::of::file::Type::member`, the path without its extension."""
        return "::".join([_bare(place.path).replace("/", "::"), *self._inner(place)])

    def symbol_id(self, place: Place) -> str:
        """`sym_` and 16 hex digits, the same for as long as path, name and kind are.

        Of several definitions that share these, each has its own, by their order.
        """
        file = self._tree.files[place.path]
        kind = file.kinds[place.index] if place.index >= 0 else 0
        before = 0
        if place.index >= 0:
            one = file.symbol(place.index)
            same = file.entries_in(one.name, file.scopes[place.index])
            before = sum(other < place.index and file.kinds[other] == kind for other in same)
        text = "\0".join([place.path, *self._inner(place), str(int(kind)), str(before)])
        return f"sym_{blake2b(text.encode(errors='replace'), digest_size=8).hexdigest()}"

    def find(self, name: str) -> Found:
        """All definitions of that name; where there are none, those whose name ends so."""
        wanted = _parts(name)
        exact, ending = [], []
        for place in self._ending(wanted):
            for full in self._spellings(place):
                if full == wanted:
                    exact.append(place)
                elif len(full) > len(wanted) and full[-len(wanted) :] == wanted:
                    ending.append(place)
                else:
                    continue
                break
        return Found(tuple(sorted(exact or ending)), bool(exact))

    def near(self, name: str) -> list[str]:
        """Qualified names that end in nearly the same, nearest first."""
        wanted = (_parts(name) or [""])[-1]
        lower = wanted.lower()
        pool = {
            one.lower(): one
            for one in sorted(self._tree.named)
            if abs(len(one) - len(wanted)) <= _NEAR_LENGTH or lower in one.lower()
        }
        close = difflib.get_close_matches(lower, sorted(pool), _NEAR_LIMIT, _NEAR_ENOUGH)
        names: dict[str, None] = {}
        for one in dict.fromkeys(close + [each for each in sorted(pool) if lower in each]):
            for place in sorted(self._ending([pool[one]])):
                names[self.qualified_name(place)] = None
                if len(names) == _NEAR_LIMIT:
                    return list(names)
        return list(names)

    def edges_from(self, path: str) -> list[Edge]:
        """What the file's definitions use, in the order of scopes and lines."""
        self.settle()
        file = self._tree.files[path]
        starts = [
            one for one in range(0, len(file.rows), ROW) if not file.rows[one + 3] & CONTINUED
        ]
        edges = filter(None, (self._edge(file, one // ROW) for one in starts))
        return sorted(edges, key=lambda one: (one.scope_index, one.line, one.kind, one.targets))

    def edges_to(self, place: Place) -> list[tuple[Place, Edge]]:
        """Who uses the definition, and by what edge; sorted by the users' places and lines."""
        arrays = self.arrays()
        if self._incoming is None:
            order = np.argsort(arrays.targets, kind="stable").astype(np.int32)
            counts = np.bincount(arrays.targets, minlength=len(arrays.places))
            self._incoming = order, np.cumsum(counts).astype(np.int32)
        users, ends = self._incoming
        number = arrays.places.number(place)
        found = []
        for one in users[ends[number - 1] if number else 0 : ends[number]]:
            source = arrays.places[int(arrays.sources[one])]
            if edge := self._edge(self._tree.files[source.path], int(arrays.rows[one])):
                found.append((source, edge))
        return sorted(found, key=lambda pair: (pair[0], pair[1].line, pair[1].kind))

    def counts(self) -> EdgeCounts:
        """How many edges of the tree are certain, and how many uses have none."""
        self.settle()
        certain = open_ = unresolved = 0
        for file in self._tree.files.values():
            unresolved += file.unresolved
            for start in range(0, len(file.rows), ROW):
                flags, target = file.rows[start + 3], file.rows[start + 4]
                if flags & BY_NAME and not self._methods_of(file.rules.family, target):
                    unresolved += 1
                elif not flags & CONTINUED:
                    certain += not flags & CANDIDATE
                    open_ += flags & CANDIDATE
        return EdgeCounts(certain, open_, unresolved)

    def arrays(self) -> GraphArrays:
        """Nodes and edges as numbers; kept until something changes."""
        self.settle()
        if self._arrays is None:
            self._arrays = self._made()
        return self._arrays

    def _made(self) -> GraphArrays:
        files = [self._tree.files[path] for path in self.paths]
        places = Places(self.paths, [len(file.ids) for file in files])
        rows_of_all = np.frombuffer(b"".join(file.rows.tobytes() for file in files), np.int32)
        table = rows_of_all.reshape(-1, ROW)
        lengths = np.array([len(file.rows) // ROW for file in files], np.int32)
        bases = np.array([places.first(path) for path in self.paths], np.int32)
        starts = np.cumsum(lengths) - lengths
        rows = (np.arange(len(table)) - np.repeat(starts, lengths)).astype(np.int32)
        # The edge that a further target belongs to is told by its first row.
        heads = np.maximum.accumulate(np.where(table[:, 3] & CONTINUED, 0, np.arange(len(table))))
        rows = rows[heads] if len(rows) else rows
        sources: Numbers = (table[:, 0] + np.repeat(bases, lengths)).astype(np.int32)
        numbers = np.frombuffer(b"".join(file.ids.tobytes() for file in files), np.int32)
        positions = np.zeros(len(self._tree.file_of) + 1, np.int32)
        positions[numbers] = np.arange(len(numbers), dtype=np.int32)
        named = table[:, 3] & BY_NAME != 0
        certainties = np.where(table[:, 3] & CANDIDATE, _CANDIDATES, _RESOLVED).astype(np.int32)
        chosen = np.flatnonzero(~named)
        picks, targets = self._picked(np.flatnonzero(named), table, files, lengths)
        index = np.concatenate([chosen, picks])
        ends = np.concatenate([table[chosen, 4], targets])
        order = np.argsort(index, kind="stable")
        index = index[order]
        return GraphArrays(
            places,
            sources[index],
            positions[ends[order]],
            table[index, 1],
            certainties[index],
            rows[index],
        )

    def _picked(
        self, named: npt.NDArray[np.int64], table: Numbers, files: list[File], lengths: Numbers
    ) -> tuple[npt.NDArray[np.int64], Numbers]:
        """For rows that name a method only: the row and the target, once for each target."""
        owners = np.repeat(np.arange(len(files)), lengths)[named].tolist()
        picks, targets = array("q"), array("i")
        for row, owner, text in zip(named.tolist(), owners, table[named, 4].tolist(), strict=True):
            for number in self._methods_of(files[owner].rules.family, text):
                picks.append(row)
                targets.append(number)
        return np.frombuffer(picks, np.int64), np.frombuffer(targets, np.int32)

    def _methods_of(self, family: str, text: int) -> tuple[int, ...]:
        """The methods that a bare method name may mean: none where they are too many."""
        key = (family, text)
        if (found := self._methods.get(key)) is None:
            numbers = self._tree.methods(self._tree.texts[text], family)
            found = tuple(numbers) if len(numbers) <= MEANINGS_LIMIT else ()
            found = self._methods[key] = tuple(sorted(found, key=self._place))
        return found

    def _edge(self, file: File, row: int) -> Edge | None:
        start = row * ROW
        scope, kind, line, flags, target = file.rows[start : start + ROW]
        if flags & BY_NAME:
            numbers = list(self._methods_of(file.rules.family, target))
        else:
            numbers = [target]
            start += ROW
            while start < len(file.rows) and file.rows[start + 3] & CONTINUED:
                numbers.append(file.rows[start + 4])
                start += ROW
        if not numbers:
            return None
        certainty = _CANDIDATES if flags & CANDIDATE else _RESOLVED
        targets = tuple(sorted(map(self._place, numbers)))
        return Edge(scope - 1, EdgeKind.ValueType(kind), certainty, targets, line)

    def _place(self, number: int) -> Place:
        file = self._tree.file_of[number]
        assert file is not None
        return Place(file.path, self._tree.index_of[number])

    def _inner(self, place: Place) -> list[str]:
        file, names = self._tree.files[place.path], list[str]()
        scope = place.index + 1
        while scope:
            symbol = file.symbol(scope - 1)
            names.append(symbol.name)
            if symbol.receiver and symbol.kind != SymbolKind.SYMBOL_KIND_OTHER:
                names.append(symbol.receiver.rpartition(".")[2])
            scope = file.scopes[scope - 1]
        return names[::-1]

    def _ending(self, parts: list[str]) -> Iterator[Place]:
        """Places whose name may end in these parts: all that do are among them."""
        if not parts:
            return
        for number in self._tree.named.get(parts[-1], ()):
            yield self._place(number)
        for path in self.paths:
            if any(parts[-1] == last_part(one) for one in (path, _bare(path))):
                yield Place(path, FILE)

    def _spellings(self, place: Place) -> Iterator[list[str]]:
        inner = [part for name in self._inner(place) for part in _parts(name)]
        yield _parts(_bare(place.path)) + inner
        yield _parts(place.path) + inner


def _bare(path: str) -> str:
    """The path without its extension."""
    folder, slash, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return folder + slash + stem


def _parts(name: str) -> list[str]:
    """A name's parts, whatever stands between them."""
    return [part for part in name.replace("::", "/").replace(".", "/").split("/") if part]
