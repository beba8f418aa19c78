"""PHP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_USE = re.compile(r"use\b\s*(?:(?:function|const)\b\s*)?(.*?);?\s*", re.DOTALL)
_GROUP = re.compile(r"([\w\\]+)\\\s*\{(.*)\}\s*", re.DOTALL)
_ITEM = re.compile(r"\s*(?:(?:function|const)\s+)?\\?([\w\\]+)(?:\s+as\s+(\w+))?\s*")
_FILE = re.compile(r"[\"']/?([^\"']+)[\"'][\s)]*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    statement = source.text(start, end)
    found = _USE.fullmatch(statement)
    if found is None:
        path = _FILE.search(statement)
        if path is not None:
            yield Import(start, module=path.group(1), is_star=True, is_exported=True)
        return
    names, before = found.group(1), ""
    if group := _GROUP.fullmatch(names):
        before, names = group.group(1).lstrip("\\") + "\\", group.group(2)
    for item in names.split(","):
        if one := _ITEM.fullmatch(item):
            module, _, name = (before + one.group(1)).rpartition("\\")
            local = one.group(2) or name
            yield Import(start, local, module or name, name if module else "")


RULES = Rules(
    grammar=("tree_sitter_php", "language_php"),
    query=("php",),
    imports=_imports,
    prefixes=frozenset({b"clone", b"new"}),
    selves=frozenset({"this", "self", "static"}),
    doc_marks=("/", "#"),
)
