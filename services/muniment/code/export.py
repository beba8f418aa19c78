"""The index as lines of JSON: one a file, in the order of their paths.

What a line says depends on the files of the tree alone, neither on when nor in which order they
were read. It is how two indexes are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from muniment.code.graph import CodeGraph, Edge, Place
from muniment.code.indexing import Tree
from muniment.v1 import code_pb2, store_pb2

__all__ = ["export_lines"]

_PORTION_FILES = 64


def export_lines(tree: Tree) -> Iterator[bytes]:
    """The lines, some at a time: of what is read, whatever the disk says by now."""
    known = tree.known()
    paths = sorted(known)
    for start in range(0, len(paths), _PORTION_FILES):
        with tree.graph() as graph:
            lines = [
                _line(graph, path, known[path].condition)
                for path in paths[start : start + _PORTION_FILES]
                if tree.knows(path)
            ]
        yield b"".join(lines)


def _line(graph: CodeGraph, path: str, condition: code_pb2.FileCondition.ValueType) -> bytes:
    facts = graph.facts(path)
    said = {
        "path": path,
        "language": graph.language(path),
        "condition": code_pb2.FileCondition.Name(condition).removeprefix("FILE_CONDITION_"),
        "package": facts.package,
        "symbols": [
            _symbol(graph, Place(path, index), symbol) for index, symbol in enumerate(facts.symbols)
        ],
        "edges": [_edge(graph, path, edge) for edge in graph.edges_from(path)],
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _symbol(graph: CodeGraph, place: Place, symbol: store_pb2.CodeSymbol) -> dict[str, Any]:
    return {
        "id": graph.symbol_id(place),
        "name": graph.qualified_name(place),
        "kind": code_pb2.SymbolKind.Name(symbol.kind).removeprefix("SYMBOL_KIND_"),
        "line": symbol.line,
        "end_line": symbol.end_line,
        "signature": symbol.signature,
        "doc": symbol.doc,
        "ast_hash": f"{symbol.ast_hash:016x}",
    }


def _edge(graph: CodeGraph, path: str, edge: Edge) -> dict[str, Any]:
    return {
        "from": graph.qualified_name(Place(path, edge.scope_index)),
        "kind": code_pb2.EdgeKind.Name(edge.kind).removeprefix("EDGE_KIND_"),
        "certainty": code_pb2.EdgeCertainty.Name(edge.certainty).removeprefix("EDGE_CERTAINTY_"),
        "to": [
            [graph.qualified_name(target), target.path, _line_of(graph, target)]
            for target in edge.targets
        ],
        "line": edge.line,
    }


def _line_of(graph: CodeGraph, place: Place) -> int:
    return graph.facts(place.path).symbols[place.index].line if place.index >= 0 else 0
