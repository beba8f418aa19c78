"""Figures in what llama-server answers to an action on a slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["count_in", "milliseconds_in"]


def count_in(answer: Mapping[str, Any], name: str) -> int:
    """A count of it; 0 where there is none."""
    value = answer.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def milliseconds_in(answer: Mapping[str, Any], name: str) -> int:
    """One of its timings, rounded; 0 where there is none."""
    timings = answer.get("timings")
    value = timings.get(name) if isinstance(timings, dict) else None
    return round(value) if isinstance(value, (int, float)) else 0
