"""What is on the shelf, and when to order more."""

from dataclasses import dataclass

REORDER_POINT = 12


@dataclass(frozen=True)
class Article:
    """One article of the shop."""

    sku: str
    name: str
    on_hand: int
    weekly_sales: float
    lead_weeks: int = 1


def reorder_point(article: Article) -> int:
    """Return the quantity at which the article is ordered again."""
    return REORDER_POINT
