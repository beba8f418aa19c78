"""Ruby."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_REQUIRE = re.compile(r"(?:\w+\s*\.\s*)?\w+[\s(]*[\"']([^\"'#]+)[\"'][\s)]*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _REQUIRE.fullmatch(source.text(start, end))
    if found is not None:
        yield Import(start, module=found.group(1), is_star=True, is_exported=True)


RULES = Rules(
    grammar=("tree_sitter_ruby", "language"),
    query=("ruby",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset(),
    selves=frozenset({"self"}),
    nothing=frozenset({"nil"}),
    maker="new",
    doc_marks=("#",),
)
