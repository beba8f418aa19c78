"""Zig."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_IMPORT = re.compile(r"(pub\s+)?(?:const|var)\s+(\w+)\s*=\s*@import\(\s*\"([^\"]+)\"")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _IMPORT.match(source.text(start, end))
    if found is not None:
        is_exported, local, module = found.groups()
        yield Import(start, local, module, is_exported=bool(is_exported))


RULES = Rules(
    grammar=("tree_sitter_zig", "language"),
    query=("zig",),
    imports=_imports,
    prefixes=frozenset({b"try", b"comptime"}),
    selves=frozenset(),
    doc_marks=("///",),
)
