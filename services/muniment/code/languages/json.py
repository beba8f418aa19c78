"""JSON: top-level keys."""

from __future__ import annotations

from muniment.code.languages.rules import Rules
from muniment.code.limits import DATA_SYMBOLS_LIMIT

__all__ = ["RULES"]

RULES = Rules(
    grammar=("tree_sitter_json", "language"),
    query=("json",),
    symbols_limit=DATA_SYMBOLS_LIMIT,
)
