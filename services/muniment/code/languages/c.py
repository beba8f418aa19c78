"""C."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES", "imports"]

_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")


def imports(source: Source, start: int, end: int) -> Iterator[Import]:
    """All that a header says is known, also to those who include the including file."""
    found = _INCLUDE.match(source.text(start, end))
    if found is not None:
        yield Import(start, module=found.group(1), is_star=True, is_exported=True)


RULES = Rules(
    grammar=("tree_sitter_c", "language"),
    query=("c",),
    imports=imports,
    selves=frozenset(),
    nothing=frozenset({"NULL"}),
    doc_marks=("/",),
)
