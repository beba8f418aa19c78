"""Prices as suppliers write them, turned into whole cents."""

from decimal import Decimal


def parse_price(text: str) -> int:
    """Return the price in cents; a currency sign on either side is ignored."""
    number = text.strip("€ ")
    return int(Decimal(number) * 100)
