"""Elixir."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_STATEMENT = re.compile(
    r"(use|import|alias|require)[\s(]+([\w.]+?)(?:\.\{([^}]*)\})?"
    r"(?:,\s*as:\s*([\w.]+))?(?=[\s,)]|\Z)"
)


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _STATEMENT.match(source.text(start, end))
    if found is None:
        return
    word, path, names, alias = found.groups()
    if names:
        for name in names.split(","):
            module = f"{path}.{name.strip()}"
            yield Import(start, module.rpartition(".")[2], module)
    elif word in ("use", "import"):
        yield Import(start, module=path, is_star=True)
    else:
        yield Import(start, alias or path.rpartition(".")[2], path)


RULES = Rules(
    grammar=("tree_sitter_elixir", "language"),
    query=("elixir",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset(),
    selves=frozenset(),
    nothing=frozenset({"nil"}),
    doc_marks=("#",),
)
