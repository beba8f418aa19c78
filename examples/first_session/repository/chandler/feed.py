"""Supplier feeds: CSV in, prices out."""

import csv
import logging
import sqlite3
from collections.abc import Iterable

from .prices import parse_price

log = logging.getLogger("feed")


def import_feed(db: sqlite3.Connection, supplier: str, lines: Iterable[str]) -> int:
    """Store the price of every article in a supplier's feed; return how many there were."""
    count = 0
    for row in csv.DictReader(lines, delimiter=";"):
        db.execute(
            "INSERT OR REPLACE INTO price (supplier, sku, cents) VALUES (?, ?, ?)",
            (supplier, row["sku"], parse_price(row["price"])),
        )
        db.commit()
        count += 1
    log.info("%s: %d rows", supplier, count)
    return count
