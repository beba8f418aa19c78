"""SQL: what is created."""

from __future__ import annotations

from muniment.code.languages.rules import Rules

__all__ = ["RULES"]

RULES = Rules(
    grammar=("tree_sitter_sql", "language"),
    query=("sql",),
)
