"""C#."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_USING = re.compile(
    r"(?:global\s+)?using\s+(?:static\s+)?(?:(\w+)\s*=\s*)?"
    r"(?:global::)?([\w.\s]+?)\s*(?:<.*>)?\s*;?\s*",
    re.DOTALL,
)


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    found = _USING.fullmatch(source.text(start, end))
    if found is None:
        return
    path = "".join(found.group(2).split())
    if found.group(1):
        module, _, name = path.rpartition(".")
        yield Import(start, found.group(1), module or name, name if module else "")
    else:
        yield Import(start, module=path, is_star=True)


RULES = Rules(
    grammar=("tree_sitter_c_sharp", "language"),
    query=("c_sharp",),
    imports=_imports,
    wrappers=frozenset({"Lazy", "Nullable", "Task", "ValueTask"}),
    selves=frozenset({"this"}),
    doc_marks=("/",),
)
