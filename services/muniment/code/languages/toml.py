"""TOML: tables and top-level keys."""

from __future__ import annotations

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Rules
from muniment.code.limits import DATA_SYMBOLS_LIMIT

__all__ = ["RULES"]

RULES = Rules(
    grammar=("tree_sitter_toml", "language"),
    query=("toml",),
    layout=Layout.LINES,
    symbols_limit=DATA_SYMBOLS_LIMIT,
)
