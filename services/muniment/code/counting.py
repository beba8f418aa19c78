"""Tokens of a map: as the serving model's own tokenizer counts them, else estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muniment.kit.counting import TOKENIZER, estimate_tokens

__all__ = ["ESTIMATING", "TokenCounter"]


@dataclass(frozen=True)
class TokenCounter:
    """Who counts, and how."""

    tokenizer: str
    exact: bool
    """It is the serving model's own."""
    count: Callable[[Sequence[str]], Sequence[int]]
    """May raise a MunimentError where the model went away."""


ESTIMATING = TokenCounter(
    TOKENIZER, exact=False, count=lambda texts: [estimate_tokens(text) for text in texts]
)
"""Who counts where no model serves."""
