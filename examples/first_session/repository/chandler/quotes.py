"""Quotes that customers paste from a mail."""

from .prices import parse_price


def quote_total(lines: list[str]) -> int:
    """Return the sum in cents of lines such as `2 x € 12.50`."""
    total = 0
    for line in lines:
        amount, _, price = line.partition(" x ")
        total += int(amount) * parse_price(price)
    return total
