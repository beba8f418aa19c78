"""Shell scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_SOURCE = re.compile(r"(?:source|\.)\s+[\"']?(?:\$\{?\w+\}?/|\$\([^)]*\)/)?([\w./+-]+)")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _SOURCE.match(source.text(start, end))
    if found is not None:
        yield Import(start, module=found.group(1), is_star=True, is_exported=True)


RULES = Rules(
    grammar=("tree_sitter_bash", "language"),
    query=("bash",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset(),
    selves=frozenset(),
    doc_marks=("#",),
)
