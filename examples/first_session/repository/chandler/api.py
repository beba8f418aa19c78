"""Stock as the JSON that the till reads."""

from .stock import Article, reorder_point


def stock_line(article: Article, cents: int) -> dict[str, object]:
    """Return one article in the form of `GET /v1/stock/{sku}`."""
    return {
        "sku": article.sku,
        "name": article.name,
        "onHand": article.on_hand,
        "unitCost": cents,
        "reorderPoint": reorder_point(article),
    }
