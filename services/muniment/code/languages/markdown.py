"""Markdown: headings."""

from __future__ import annotations

from muniment.code.hashing import Layout
from muniment.code.languages.rules import Rules
from muniment.code.limits import DATA_SYMBOLS_LIMIT

__all__ = ["RULES"]

RULES = Rules(
    grammar=("tree_sitter_markdown", "language"),
    query=("markdown",),
    layout=Layout.EXACT,
    symbols_limit=DATA_SYMBOLS_LIMIT,
)
