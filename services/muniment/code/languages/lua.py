"""Lua."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_REQUIRE = re.compile(r"(?:local\s+(\w+)\b[^=]*=\s*)?require[\s(]*[\"']([^\"']+)[\"'][\s)]*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _REQUIRE.match(source.text(start, end))
    if found is not None:
        # Dots of a module's name are folders.
        yield Import(start, found.group(1) or "", found.group(2).replace(".", "/"))


RULES = Rules(
    grammar=("tree_sitter_lua", "language"),
    query=("lua",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset(),
    selves=frozenset({"self"}),
    doc_marks=("--",),
)
