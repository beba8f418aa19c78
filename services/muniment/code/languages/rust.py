"""Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.code.languages.rules import Import, Rules
from muniment.code.source import Source

__all__ = ["RULES"]

_STATEMENT = re.compile(r"(pub\b(?:\s*\([^)]*\))?)?\s*(use|mod)\b\s*(.*?);?\s*", re.DOTALL)
_TOKEN = re.compile(r"[{},]|[^{},]+")


def _imports(source: Source, start: int, end: int) -> Iterator[Import]:
    # Attributes are no part of the statement's text; macro arguments could be anything.
    found = _STATEMENT.fullmatch(source.text(start, end))
    if found is None:
        return
    is_exported, word, tree = bool(found.group(1)), found.group(2), found.group(3)
    if word == "mod":
        yield Import(start, tree.strip(), "self", tree.strip(), is_exported=is_exported)
        return
    for path in _paths(tree):
        name, _, alias = path.partition(" as ")
        module, _, last = name.strip().rpartition("::")
        local = alias.strip() or last
        if last == "*":
            yield Import(start, module=module, is_star=True, is_exported=is_exported)
        elif last == "self":
            local = alias.strip() or module.rpartition("::")[2]
            yield Import(start, local, module, is_exported=is_exported)
        elif module:
            yield Import(
                start, "" if local == "_" else local, module, last, is_exported=is_exported
            )
        elif last:
            yield Import(start, local, last, is_exported=is_exported)


def _paths(tree: str) -> Iterator[str]:
    """The paths that a use tree stands for, each in full."""
    prefixes = [""]
    pending = ""
    for token in _TOKEN.findall(tree):
        if token == "{":
            prefixes.append(pending)
            pending = prefixes[-1]
        elif token in ",}":
            if pending != prefixes[-1]:
                yield pending
            if token == "}" and len(prefixes) > 1:
                prefixes.pop()
                # What stood before the braces is used up with them.
                pending = prefixes[-1]
                continue
            pending = prefixes[-1]
        else:
            part = " ".join(token.split())
            pending += part.replace(" ::", "::").replace(":: ", "::")
    if pending != prefixes[-1]:
        yield pending


RULES = Rules(
    grammar=("tree_sitter_rust", "language"),
    query=("rust",),
    imports=_imports,
    prefixes=frozenset({b"mut"}),
    wrappers=frozenset(
        {"Arc", "Box", "Cow", "Option", "Pin", "Rc", "Ref", "RefMut", "Result", "MutexGuard"}
    ),
    passed_over=re.compile(
        r"\.(?:await|(?:unwrap|expect|clone|borrow|borrow_mut|as_ref|as_mut|to_owned)\(\))(?=\.|$)"
    ),
    selves=frozenset({"self"}),
    names_are_own=True,
    doc_marks=("///", "/**"),
)
