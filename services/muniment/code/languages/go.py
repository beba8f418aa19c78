"""Go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_SPEC = re.compile(r"([\w.]*)\s*[\"`]([^\"`]*)[\"`]")
_VERSION = re.compile(r"v\d+")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _SPEC.match(source.text(start, end))
    if found is None:
        return
    alias, module = found.groups()
    if alias == ".":
        yield Import(start, module=module, is_star=True)
    elif alias == "_":
        yield Import(start, module=module)
    else:
        yield Import(start, alias or _package_of(module), module)


def _package_of(module: str) -> str:
    """The name that a package most likely has, by its path."""
    parts = module.split("/")
    if len(parts) > 1 and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1].removeprefix("go-").partition(".")[0].replace("-", "_")


RULES = Rules(
    grammar=("tree_sitter_go", "language"),
    query=("go",),
    layout=Layout.LINES,
    imports=_imports,
    prefixes=frozenset({b"go", b"defer"}),
    selves=frozenset(),
)
