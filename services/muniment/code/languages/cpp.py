"""C++."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from muniment.code.languages import c
from muniment.code.languages.rules import Import
from muniment.code.source import Source

__all__ = ["RULES"]

_USING = re.compile(r"using\s+(namespace\s+|enum\s+)?(?:::)?\s*([\w:\s]+?)\s*;?\s*")
_ALIAS = re.compile(r"namespace\s+(\w+)\s*=\s*(?:::)?\s*([\w:\s]+?)\s*;?\s*")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    statement = source.text(start, end)
    if found := _USING.fullmatch(statement):
        path = "".join(found.group(2).split())
        module, _, name = path.rpartition("::")
        if found.group(1):
            yield Import(start, module=path, is_star=True, is_exported=True)
        elif module:
            yield Import(start, name, module, name, is_exported=True)
    elif found := _ALIAS.fullmatch(statement):
        yield Import(start, found.group(1), "".join(found.group(2).split()), is_exported=True)
    else:
        yield from c.imports(source, start, end)


RULES = replace(
    c.RULES,
    grammar=("tree_sitter_cpp", "language"),
    query=("c", "cpp"),
    imports=_imports,
    prefixes=frozenset({b"new", b"co_await"}),
    wrappers=frozenset({"optional", "reference_wrapper", "shared_ptr", "unique_ptr", "weak_ptr"}),
    selves=frozenset({"this"}),
    nothing=frozenset({"NULL", "nullptr"}),
)
