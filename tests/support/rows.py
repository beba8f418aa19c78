"""Rows of a table as a test reads them: none that cannot be believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import Message

from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Table
from muniment.kit.store.keys import KeyPart

__all__ = ["scan"]

M = TypeVar("M", bound=Message)


def scan(
    reader: Reader, table: Table[M], *prefix: KeyPart, after: tuple[KeyPart, ...] | None = None
) -> Iterator[tuple[tuple[KeyPart, ...], M]]:
    """The rows that `survey` gives.

    Raises:
        TamperedError: One of them cannot be believed.
    """
    for key, value in reader.survey(table, *prefix, after=after):
        if isinstance(value, TamperedError):
            raise value
        yield key, value
