"""Prices: every way of writing one that a feed has used."""

from ..prices import parse_price
from ..quotes import quote_total


def test_plain_price() -> None:
    assert parse_price("€ 84.50") == 8450


def test_whole_euros() -> None:
    assert parse_price("84") == 8400


def test_quote_total() -> None:
    assert quote_total(["2 x € 12.50", "1 x 3"]) == 2800
