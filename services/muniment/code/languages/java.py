"""Java."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_STATEMENT = re.compile(r"import\s+(?:static\s+)?([\w.\s]+?)(\.\s*\*)?\s*;?\s*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _STATEMENT.fullmatch(source.text(start, end))
    if found is None:
        return
    path = "".join(found.group(1).split())
    module, _, name = path.rpartition(".")
    if found.group(2):
        yield Import(start, module=path, is_star=True)
    elif module:
        yield Import(start, name, module, name)


RULES = Rules(
    grammar=("tree_sitter_java", "language"),
    query=("java",),
    imports=_imports,
    wrappers=frozenset({"Optional"}),
    selves=frozenset({"this"}),
    doc_marks=("/**", "///", "//"),
)
