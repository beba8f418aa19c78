"""What the code index answers, as plain values that turn into JSON.

Names, signatures and comments are of whoever wrote the files: they are data, and one line of
them stays one line. A key is absent where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.kit.printable import printable
from muniment.v1 import code_pb2
from muniment.workflows.server_words import word_of

__all__ = [
    "one_meant",
    "place_of",
    "told_definition",
    "told_dependent",
    "told_index",
    "told_map",
]

Told = dict[str, Any]


def told_definition(definition: code_pb2.Definition) -> Told:
    """A definition; `doc` only where it has one."""
    told: Told = {
        "qualified_name": printable(definition.qualified_name),
        "kind": word_of(code_pb2.SymbolKind, definition.kind),
        "signature": printable(definition.signature),
        "file": printable(definition.file),
        "line": definition.line,
        "end_line": definition.end_line,
    }
    if definition.doc:
        told["doc"] = printable(definition.doc)
    return told | {
        "language": definition.language,
        "ast_hash": definition.ast_hash,
        "symbol_id": definition.symbol_id,
    }


def told_dependent(dependent: code_pb2.Dependent) -> Told:
    """Something that reaches a target, and how."""
    definition = dependent.definition
    return {
        "qualified_name": printable(definition.qualified_name),
        "file": printable(definition.file),
        "line": definition.line,
        "depth": dependent.depth,
        "via": word_of(code_pb2.EdgeKind, dependent.via),
        "through": printable(dependent.through),
        "at_line": dependent.at_line,
        "certainty": word_of(code_pb2.EdgeCertainty, dependent.certainty),
        "stale": dependent.is_stale,
        "test": dependent.is_test,
    }


def told_index(state: code_pb2.IndexState) -> Told:
    """How current the index is, and how large."""
    told: Told = {
        "freshness": word_of(code_pb2.Freshness, state.freshness),
        "note": printable(state.note),
        "files": state.files,
        "symbols": state.symbols,
    }
    if state.HasField("indexed_at"):
        told["indexed_at"] = state.indexed_at.ToJsonString()
    return told | {
        "waiting_files": state.waiting_files,
        "changed_files": state.changed_files,
        "is_watched": state.is_watched,
    }


def told_map(response: code_pb2.GetRepoMapResponse) -> Told:
    """A map with its tokens; in place of one that is empty, why it is."""
    return {
        "map": printable(response.map or response.state.note, one_line=False),
        "tokens_used": response.tokens_used,
        "tokenizer": response.tokenizer,
        "exact": response.exact,
        "shown_symbols": response.shown_symbols,
        "symbols": response.symbols,
        "notes": [printable(note) for note in response.notes],
    }


def one_meant(definitions: Sequence[Told]) -> Told | None:
    """The first definition, where all of them are of one name: of several names none is meant."""
    names = {one["qualified_name"] for one in definitions}
    return definitions[0] if len(names) == 1 else None


def place_of(told: Mapping[str, Any], lines: Iterable[str] = ("line",)) -> str:
    """Where something stands: `path:3`, or `path:3-9` with both its lines."""
    numbers = dict.fromkeys(str(told[name]) for name in lines)
    return f"{told['file']}:{'-'.join(numbers)}"
