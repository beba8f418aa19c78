"""Results as Markdown tables, and their numbers from samples."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["percentile", "table"]


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample that so large a share of them does not pass."""
    ordered = sorted(samples)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, aligned for a terminal too."""
    cells = [[_cell(one) for one in row] for row in rows]
    widths = [
        max(len(head), *(len(row[column]) for row in cells)) if cells else len(head)
        for column, head in enumerate(heads)
    ]

    def line(parts: Sequence[str]) -> str:
        padded = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([line(heads), rule, *map(line, cells)])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)
