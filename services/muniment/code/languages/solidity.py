"""Solidity."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_PATH = re.compile(r"[\"']([^\"']+)[\"']")
_NAMES = re.compile(r"\{(.*)\}", re.DOTALL)
_NAME = re.compile(r"\s*(\w+)(?:\s+as\s+(\w+))?\s*")
_ALIAS = re.compile(r"\bas\s+(\w+)")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    statement = source.text(start, end)
    path = _PATH.search(statement)
    if path is None:
        return
    module = path.group(1)
    rest = statement[: path.start()] + statement[path.end() :]
    if names := _NAMES.search(rest):
        for one in filter(None, map(_NAME.fullmatch, names.group(1).split(","))):
            yield Import(start, one.group(2) or one.group(1), module, one.group(1))
    elif alias := _ALIAS.search(rest):
        yield Import(start, alias.group(1), module)
    else:
        yield Import(start, module=module, is_star=True, is_exported=True)


RULES = Rules(
    grammar=("tree_sitter_solidity", "language"),
    query=("solidity",),
    imports=_imports,
    selves=frozenset({"this"}),
    doc_marks=("/",),
)
