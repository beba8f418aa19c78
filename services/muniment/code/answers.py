"""What the index answers: definitions, dependents, outlines, and what it holds.

Each is made of a graph that nobody else touches meanwhile, and says of which files it is made.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from muniment.code.freshness import Made
from muniment.code.graph import CodeGraph, Place
from muniment.code.impact import Dependent, dependents
from muniment.code.indexing import Known, Tree
from muniment.code.limits import DEFINITIONS_LIMIT, FOCUS_LIMIT, IMPACT_DEPTH_LIMIT, IMPACT_LIMIT
from muniment.code.paths import exists, shown, under
from muniment.kit.errors import InvalidArgumentError
from muniment.v1 import code_pb2

__all__ = ["Focus", "Impact", "Symbols", "find_focus", "find_impact", "find_symbols", "holdings"]

_EXAMPLES = 5

_REASONS = {
    code_pb2.FILE_CONDITION_NO_GRAMMAR: "there is no grammar for it",
    code_pb2.FILE_CONDITION_TOO_LARGE: "it is too large",
    code_pb2.FILE_CONDITION_BINARY: "it is binary",
    code_pb2.FILE_CONDITION_UNREADABLE: "it cannot be read",
    code_pb2.FILE_CONDITION_PARSER_FAILED: "the parser failed on it",
}


@dataclass(frozen=True)
class Symbols:
    """Definitions of a name."""

    definitions: Sequence[code_pb2.Definition]
    is_exact: bool
    near_names: Sequence[str]


@dataclass(frozen=True)
class Impact:
    """Who depends on a name's definitions."""

    targets: Sequence[code_pb2.Definition]
    dependents: Sequence[code_pb2.Dependent]
    left_out: int
    near_names: Sequence[str]
    """Where nothing has the name."""


@dataclass(frozen=True)
class Focus:
    """Files that a map is about."""

    files: Collection[str]
    notes: Sequence[str]
    """On what is there and has no symbols."""


def find_symbols(graph: CodeGraph, name: str) -> Made[Symbols]:
    """Every definition of the name, or names that are near."""
    _check_name(name)
    found = graph.find(name)
    definitions = [_definition(graph, place) for place in found.places[:DEFINITIONS_LIMIT]]
    near = [] if definitions else graph.near(name)
    files = [one.file for one in definitions]
    return Made(Symbols(definitions, found.is_exact, near), files)


def find_impact(graph: CodeGraph, name: str, depth: int) -> Made[Impact]:
    """Who depends on the name's definitions, transitively; no targets where there is none.

    Raises:
        InvalidArgumentError: The depth is out of range.
    """
    _check_name(name)
    if not 1 <= depth <= IMPACT_DEPTH_LIMIT:
        raise InvalidArgumentError(
            f"is {depth}",
            reason="DEPTH_INVALID",
            field="depth",
            fix=f"give it 1 to {IMPACT_DEPTH_LIMIT}",
        )
    targets = graph.find(name).places[:DEFINITIONS_LIMIT]
    found = dependents(graph, targets, depth, lambda place: _changed_scan(graph, place))
    named = sorted(
        ((one, _definition(graph, one.place)) for one in found),
        key=lambda pair: (pair[0].depth, pair[1].qualified_name, pair[1].file, pair[1].line),
    )
    listed = named[:IMPACT_LIMIT]
    told = [_dependent(graph, one, definition) for one, definition in listed]
    files = dict.fromkeys([place.path for place in targets] + [one.place.path for one in found])
    impact = Impact(
        [_definition(graph, place) for place in targets],
        told,
        len(named) - len(listed),
        [] if targets else graph.near(name),
    )
    return Made(impact, list(files))


def find_focus(tree: Tree, paths: Sequence[str]) -> Focus:
    """The files of the tree that focus paths name, themselves or by a folder.

    Raises:
        InvalidArgumentError: One is outside the tree, or not there.
    """
    if len(paths) > FOCUS_LIMIT:
        raise _wrong_focus(f"are {len(paths)}, more than {FOCUS_LIMIT}", "name their folders")
    known = tree.known()
    files: dict[str, None] = {}
    notes: list[str] = []
    for named in paths:
        path = _inside(tree, named)
        inside = [one for one in known if one == path or not path or one.startswith(f"{path}/")]
        with_symbols = [one for one in inside if known[one].symbols]
        files.update(dict.fromkeys(with_symbols))
        if not with_symbols:
            notes.append(f"{shown(os.fsencode(named))}: {_why_nothing(known, inside)}")
    return Focus(files, notes)


def holdings(graph: CodeGraph, known: dict[str, Known]) -> code_pb2.DescribeIndexResponse:
    """What is indexed, by language and by condition, and how much of it could be told."""
    told = code_pb2.DescribeIndexResponse()
    files, symbols = Counter[str](), Counter[str]()
    by_condition: defaultdict[code_pb2.FileCondition.ValueType, list[str]] = defaultdict(list)
    for path in sorted(known):
        one = known[path]
        if one.language:
            files[one.language] += 1
            symbols[one.language] += one.symbols
        if one.condition != code_pb2.FILE_CONDITION_PARSED:
            by_condition[one.condition].append(path)
    for language in sorted(files, key=lambda one: (-files[one], one)):
        told.languages.add(language=language, files=files[language], symbols=symbols[language])
    for condition, paths in sorted(by_condition.items()):
        told.conditions.add(condition=condition, files=len(paths), examples=paths[:_EXAMPLES])
    counts = graph.counts()
    told.resolved_edges, told.candidate_edges = counts.resolved, counts.candidates
    told.unresolved_references = counts.unresolved
    return told


def _definition(graph: CodeGraph, place: Place) -> code_pb2.Definition:
    told = code_pb2.Definition(
        symbol_id=graph.symbol_id(place),
        qualified_name=graph.qualified_name(place),
        file=place.path,
        language=graph.language(place.path),
        kind=code_pb2.SYMBOL_KIND_MODULE,
        line=1,
    )
    if place.index >= 0:
        symbol = graph.symbol(place)
        told.kind, told.signature, told.doc = symbol.kind, symbol.signature, symbol.doc
        told.line, told.end_line = symbol.line, symbol.end_line
        told.ast_hash = f"{symbol.ast_hash:016x}"
    return told


def _dependent(
    graph: CodeGraph, one: Dependent, definition: code_pb2.Definition
) -> code_pb2.Dependent:
    return code_pb2.Dependent(
        definition=definition,
        depth=one.depth,
        via=one.via,
        certainty=one.certainty,
        is_stale=one.is_stale,
        at_line=one.at_line,
        is_test=one.is_test,
        through=graph.qualified_name(one.through),
    )


def _changed_scan(graph: CodeGraph, place: Place) -> int:
    if place.index >= 0:
        return graph.symbol(place).changed_scan
    return max((one.changed_scan for one in graph.facts(place.path).symbols), default=0)


def _check_name(name: str) -> None:
    if not name.strip():
        raise InvalidArgumentError(
            "is empty",
            reason="SYMBOL_NAME_EMPTY",
            field="qualified_name",
            fix="name a symbol, such as `path::Type::member`, or the end of its name",
        )


def _inside(tree: Tree, named: str) -> str:
    """The path relative to the root, as it is shown."""
    raw = os.fsencode(named)
    full = os.path.normpath(raw if raw.startswith(b"/") else under(tree.root, raw))
    if full != tree.root and not full.startswith(tree.root + b"/"):
        raise _wrong_focus(f"{shown(os.fsencode(named))} is outside the tree", "name one inside it")
    if not exists(full) and not tree.knows(shown(full[len(tree.root) + 1 :])):
        raise _wrong_focus(
            f"{shown(os.fsencode(named))} is not there", "name a file or folder of the tree"
        )
    return shown(full[len(tree.root) + 1 :])


def _why_nothing(known: dict[str, Known], inside: Iterable[str]) -> str:
    paths = list(inside)
    if not paths:
        return "nothing of it is indexed: it is ignored, empty, or still to be read"
    reasons = {_REASONS.get(known[one].condition, "it has no symbols") for one in paths}
    return "; ".join(sorted(reasons)) if len(paths) == 1 else "no file in it has symbols"


def _wrong_focus(what: str, fix: str) -> InvalidArgumentError:
    return InvalidArgumentError(what, reason="FOCUS_PATH_INVALID", field="focus_paths", fix=fix)
