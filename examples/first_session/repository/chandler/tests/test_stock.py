"""Stock: when an article is ordered again."""

from ..api import stock_line
from ..stock import Article, reorder_point

SHACKLE = Article("SHK-12", "Bow shackle 12 mm", on_hand=31, weekly_sales=9.5)


def test_reorder_point() -> None:
    assert reorder_point(SHACKLE) == 12


def test_stock_line() -> None:
    line = stock_line(SHACKLE, 1490)
    assert line["onHand"] == 31
    assert line["unitCost"] == 1490
