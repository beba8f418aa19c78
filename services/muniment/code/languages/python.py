"""Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_FROM = re.compile(r"from\s*(\.*\s*[\w.]*)\s*import\b(.*)", re.DOTALL)
_NAME = re.compile(r"([\w.]+)(?:\s+as\s+(\w+))?")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    statement = source.text(start, end).replace("\\\n", " ")
    found = _FROM.match(statement)
    if found is None:
        for name, alias in _NAME.findall(statement.removeprefix("import")):
            # `import a.b` binds `a`, through which `a.b` is reached.
            local = alias or name.partition(".")[0]
            yield Import(start, local, name if alias else local)
            if not alias and name != local:
                yield Import(start, name, name)
        return
    module = "".join(found.group(1).split())
    names = found.group(2).strip(" \t\r\n()")
    if names.startswith("*"):
        yield Import(start, module=module, is_star=True, is_exported=True)
        return
    for name, alias in _NAME.findall(names):
        yield Import(start, alias or name, module, name, is_exported=alias == name)


RULES = Rules(
    grammar=("tree_sitter_python", "language"),
    query=("python",),
    layout=Layout.INDENTED,
    imports=_imports,
    prefixes=frozenset({b"await"}),
    wrappers=frozenset({"Annotated", "ClassVar", "Final", "Optional", "Required", "NotRequired"}),
    selves=frozenset({"self", "cls"}),
    names_are_own=True,
    doc_marks=(),
)
