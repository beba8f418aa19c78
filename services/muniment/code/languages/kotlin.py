"""Kotlin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_IMPORT = re.compile(r"import\s+([\w.`]+?)(\.\*)?(?:\s+as\s+(\w+))?[\s;]*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _IMPORT.fullmatch(source.text(start, end))
    if found is None:
        return
    path = found.group(1).replace("`", "")
    module, _, name = path.rpartition(".")
    if found.group(2):
        yield Import(start, module=path, is_star=True)
    else:
        yield Import(start, found.group(3) or name, module or name, name if module else "")


RULES = Rules(
    grammar=("tree_sitter_kotlin", "language"),
    query=("kotlin",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset(),
    wrappers=frozenset({"Lazy"}),
    selves=frozenset({"this"}),
    doc_marks=("/",),
)
