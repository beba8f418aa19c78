"""JavaScript, and what TypeScript shares with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_FROM = re.compile(r"""(?:\bfrom\b|\brequire\s*\(|^import)\s*["']([^"']*)["']""")
_STAR = re.compile(r"\*(?:\s*as\s+([\w$]+))?")
_NAMES = re.compile(r"\{([^}]*)\}")
_ITEM = re.compile(r"(?:\btype\s+)?([\w$]+)(?:\s*(?:\bas\b|:)\s*([\w$]+))?")
_FIRST = re.compile(r"import\s+(?:type\s+|typeof\s+)?([\w$]+)\s*(?:,|from\b|=)")
_DECLARATION_BYTES = 200
"""Enough to see the name of what is exported as default."""
_DEFAULT = re.compile(
    r"export\s+default\s+(?:(?:async|abstract)\s+)*(?:function\b\s*\*?|class\b)?\s*([\w$]+)"
)


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    text = source.text(start, end)
    if text == "default":
        text = "export " + source.text(start, end + _DECLARATION_BYTES)
    if text.startswith("export"):
        yield from _exports(start, text)
        return
    found = _FROM.search(text)
    if found is None:
        return
    module = found.group(1)
    names = text[: found.start()]
    if not text.startswith("import"):
        yield from _required(start, names.partition("=")[0].strip(), module)
        return
    first, star, listed = _FIRST.match(text), _STAR.search(names), _NAMES.search(names)
    if first is not None:
        # `import a = require(...)` is the module, `import a from` what it exports as default.
        yield Import(start, first.group(1), module, "" if "=" in names else "default")
    if star is not None:
        yield Import(start, star.group(1) or "", module)
    for name, alias in _ITEM.findall(listed.group(1)) if listed else ():
        yield Import(start, alias or name, module, name)
    if first is None and star is None and listed is None:
        yield Import(start, module=module)


def _required(start: int, names: str, module: str) -> Iterator[Import]:
    if not names.startswith("{"):
        yield Import(start, names, module)
        return
    for name, alias in _ITEM.findall(names):
        yield Import(start, alias or name, module, name)


def _exports(start: int, text: str) -> Iterator[Import]:
    """What a file exports that is not declared so; of no module where it is its own."""
    default = _DEFAULT.match(text)
    if default is not None:
        name = default.group(1)
        if name not in ("extends", "async", "new", "function"):
            yield Import(start, "default", "", name, is_exported=True)
        return
    found = _FROM.search(text)
    module = found.group(1) if found else ""
    names = text[: found.start()] if found else text
    star, listed = _STAR.search(names), _NAMES.search(names)
    if listed is not None:
        for name, alias in _ITEM.findall(listed.group(1)):
            yield Import(start, alias or name, module, name, is_exported=True)
    elif star is not None:
        local = star.group(1) or ""
        yield Import(start, local, module, is_star=not local, is_exported=True)


RULES = Rules(
    grammar=("tree_sitter_javascript", "language"),
    query=("ecmascript", "javascript", "jsx"),
    imports=_imports,
    wrappers=frozenset({"Promise", "Readonly", "Partial", "Required", "NonNullable", "Awaited"}),
    selves=frozenset({"this"}),
    names_are_own=True,
    has_bare_keys=True,
    doc_marks=("/*", "//"),
)
