"""Who depends on a definition, through any number of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from muniment.code.graph import CodeGraph, Place
from muniment.code.roles import is_test
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind, SymbolKind

__all__ = ["Dependent", "dependents"]

_CALLS = EdgeKind.EDGE_KIND_CALLS
_INHERITANCE = (EdgeKind.EDGE_KIND_INHERITS, EdgeKind.EDGE_KIND_IMPLEMENTS)
# The strongest first.
_STRENGTH = (
    _CALLS,
    EdgeKind.EDGE_KIND_INHERITS,
    EdgeKind.EDGE_KIND_IMPLEMENTS,
    EdgeKind.EDGE_KIND_REFERENCES,
    EdgeKind.EDGE_KIND_IMPORTS,
)
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "constructor", "initialize"})


@dataclass(frozen=True, slots=True)
class Dependent:
    """A definition that reaches a target."""

    place: Place
    depth: int
    via: EdgeKind.ValueType
    certainty: EdgeCertainty.ValueType
    """The least certain on its way."""
    through: Place
    """What it uses itself: the target at depth 1."""
    at_line: int
    is_stale: bool
    """The target that it reaches changed after it was changed itself."""
    is_test: bool


@dataclass(frozen=True, slots=True)
class _Step:
    user: Place
    via: EdgeKind.ValueType
    certainty: EdgeCertainty.ValueType
    line: int


def dependents(
    graph: CodeGraph,
    targets: Iterable[Place],
    depth: int,
    changed_scan_of: Callable[[Place], int],
) -> list[Dependent]:
    """Each dependent once, with its least depth, by depth and then name.

    Of several ways of that depth the strongest counts: calls before inheritance before other
    uses, then the more certain. Methods that override a target depend on it, and who calls the
    method that a target overrides may mean the target. A user of a type's name may make a value of
    it, and so depends on its constructor.
    """
    origins = {place: place for place in targets}
    found: dict[Place, Dependent] = {}
    level = sorted(origins)
    for at in range(1, depth + 1):
        reached: dict[Place, tuple[tuple[int, int, Place, int], Dependent]] = {}
        for through in level:
            before = found.get(through)
            for step in _steps(graph, through):
                if step.user in origins:
                    continue
                certainty = max(step.certainty, before.certainty) if before else step.certainty
                stale = changed_scan_of(origins[through]) > changed_scan_of(step.user)
                one = Dependent(
                    step.user,
                    at,
                    step.via,
                    certainty,
                    through,
                    step.line,
                    stale,
                    is_test(step.user.path),
                )
                rank = (_STRENGTH.index(step.via), certainty, through, step.line)
                if step.user not in reached or rank < reached[step.user][0]:
                    reached[step.user] = rank, one
        if not reached:
            break
        for place, (_, one) in reached.items():
            found[place] = one
        origins |= {place: origins[one.through] for place, (_, one) in reached.items()}
        level = sorted(reached)
    return sorted(found.values(), key=lambda one: (one.depth, graph.qualified_name(one.place)))


def _steps(graph: CodeGraph, place: Place) -> Iterator[_Step]:
    """Who depends on the place at once."""
    yield from _users(graph, place)
    if place.index < 0 or (around := graph.parent(place)).index < 0:
        return
    symbol = graph.symbol(place)
    if symbol.kind != SymbolKind.SYMBOL_KIND_METHOD:
        return
    if symbol.name in _CONSTRUCTORS:
        yield from (one for one in _users(graph, around) if one.via == _CALLS)
        return
    for heir in _related(around, lambda one: _heirs(graph, one)):
        for override in graph.members(heir, symbol.name):
            line = graph.symbol(override).line
            yield _Step(
                override,
                EdgeKind.EDGE_KIND_INHERITS,
                EdgeCertainty.EDGE_CERTAINTY_RESOLVED,
                line,
            )
    for base in _related(around, lambda one: _bases(graph, one)):
        for overridden in graph.members(base, symbol.name):
            for one in _users(graph, overridden):
                if one.via == _CALLS:
                    yield _Step(
                        one.user, one.via, EdgeCertainty.EDGE_CERTAINTY_CANDIDATES, one.line
                    )


def _users(graph: CodeGraph, place: Place) -> Iterator[_Step]:
    for user, edge in graph.edges_to(place):
        yield _Step(user, edge.kind, edge.certainty, edge.line)


def _heirs(graph: CodeGraph, place: Place) -> list[Place]:
    return [user for user, edge in graph.edges_to(place) if edge.kind in _INHERITANCE]


def _bases(graph: CodeGraph, place: Place) -> list[Place]:
    return [
        target
        for edge in graph.edges_from(place.path)
        if edge.scope_index == place.index and edge.kind in _INHERITANCE
        for target in edge.targets
    ]


def _related(start: Place, step: Callable[[Place], list[Place]]) -> list[Place]:
    """All that is reached from a type, itself not included; circles end."""
    seen, todo = {start}, [start]
    for one in todo:
        for other in step(one):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return todo[1:]
