"""Which dotted name an expression means, as far as the module's own imports tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["imported_names", "references"]


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each name that the module imports stands for: `{"dt": "datetime"}`."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.split(".")[0]
                names[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def references(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Each use of an imported name, with the dotted name that it means."""
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            dotted = _dotted(node, names)
            if dotted is not None:
                yield node, dotted


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, names)
        return None if base is None else f"{base}.{node.attr}"
    return None
