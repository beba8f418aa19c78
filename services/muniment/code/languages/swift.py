"""Swift."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_IMPORT = re.compile(
    r"(.*\s)?import\s+(?:(?:class|enum|func|let|protocol|struct|typealias|var)\s+)?([\w.]+)",
    re.DOTALL,
)


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _IMPORT.match(source.text(start, end))
    if found is not None:
        is_exported = "@_exported" in (found.group(1) or "")
        yield Import(start, module=found.group(2), is_star=True, is_exported=is_exported)


RULES = Rules(
    grammar=("tree_sitter_swift", "language"),
    query=("swift",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset({b"await", b"try"}),
    wrappers=frozenset({"Optional"}),
    selves=frozenset({"self"}),
    nothing=frozenset({"nil"}),
    doc_marks=("/",),
)
