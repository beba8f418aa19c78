"""Scala."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_STATEMENT = re.compile(r"(import|export)\s+(.*)", re.DOTALL)
_PATH = re.compile(r"\s*([\w.`]*?)\.?(?:\{([^}]*)\}|([\w`*]+)(?:\s+as\s+(\w+))?)\s*(?:,|\Z)")
_NAME = re.compile(r"\s*([\w`*]+)(?:\s*(?:=>|as)\s*(\w+))?\s*")
_STARS = frozenset({"_", "*", "given"})


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    statement = _STATEMENT.fullmatch(source.text(start, end).strip())
    if statement is None:
        return
    is_exported = statement.group(1) == "export"
    for module, names, name, alias in _PATH.findall(statement.group(2)):
        listed = names.split(",") if names else [f"{name} as {alias}" if alias else name]
        for one in filter(None, map(_NAME.fullmatch, listed)):
            if one.group(1) in _STARS:
                yield Import(start, module=module, is_star=True, is_exported=is_exported)
            elif one.group(2) != "_":
                local = one.group(2) or one.group(1)
                yield Import(start, local, module, one.group(1), is_exported=is_exported)


RULES = Rules(
    grammar=("tree_sitter_scala", "language"),
    query=("scala",),
    layout=Layout.LINES,
    imports=_imports,
    wrappers=frozenset({"Option"}),
    selves=frozenset({"this"}),
    doc_marks=("/",),
)
