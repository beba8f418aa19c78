"""TypeScript with JSX."""

from __future__ import annotations

from dataclasses import replace

from muniment.code.languages import javascript

__all__ = ["RULES"]

RULES = replace(
    javascript.RULES,
    grammar=("tree_sitter_typescript", "language_tsx"),
    query=("ecmascript", "typescript", "jsx"),
)
