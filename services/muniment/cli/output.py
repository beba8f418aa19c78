"""What the command prints: tables and colour on a terminal, plain text in a pipe, JSON if asked.

Results go to stdout, progress and errors to stderr. What was stored by others is shown without
its control characters, so that it cannot drive the reader's terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from muniment.kit.errors import MunimentError
from muniment.kit.printable import DIRECTIONS, printable
from muniment.kit.progress import Report

__all__ = [
    "Json",
    "counted",
    "print_error",
    "print_json",
    "print_table",
    "print_text",
    "print_warning",
    "printable",
    "progress",
    "to_the_second",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
"""The option that every command has."""

_STYLES = {
    "RUNNING": "green",
    "STARTING": "yellow",
    "STOPPING": "yellow",
    "BACKOFF": "red",
    "EXITED": "red",
    "FATAL": "red",
    "ok": "green",
    "warning": "yellow",
    "problem": "red",
    "resolved": "green",
    "candidates": "yellow",
    "test": "cyan",
    "stale": "yellow",
}
"""Words that stand out where they are a whole cell."""

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(127, 160), *DIRECTIONS)}
"""JSON escapes the others itself."""


def print_json(value: object) -> None:
    """Print a value as JSON; what drives a terminal is escaped in it, and means the same."""
    print(json.dumps(value, indent=2, ensure_ascii=False).translate(_ESCAPED))


def print_text(text: str) -> None:
    """Print lines of text for people."""
    print(printable(text, one_line=False))


def counted(number: int, noun: str) -> str:
    """The number with its noun, which takes an s unless there is one: `1 pin`, `0 pins`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def to_the_second(timestamp: str) -> str:
    """An RFC 3339 timestamp in UTC without fractions; a blank lets a narrow table break it."""
    return f"{timestamp[:10]} {timestamp[11:19]}Z"


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, whole: Collection[str] = ()
) -> None:
    """Print rows of cells under their columns' names; the last column may be long.

    A column without any value is left out; other empty cells show a dash.

    Args:
        columns: Names, in order.
        rows: As many cells each as there are columns.
        whole: Columns whose cells are never broken, however narrow the terminal is: ids.
    """
    shown = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    names = [columns[index] for index in shown]
    clean = [[printable(row[index]) or "-" for index in shown] for row in rows]
    if sys.stdout.isatty():
        _print_rich_table(names, clean, whole)
    else:
        _print_plain_table(names, clean)


def _print_rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Collection[str]
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    least = 0
    for column, *cells in zip(columns, *rows, strict=True):
        widest = max(map(cell_len, [column, *cells])) if column in whole else None
        table.add_column(
            column.upper(), overflow="fold", min_width=widest, no_wrap=widest is not None
        )
        least += (widest or cell_len(column)) + len("  ")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console = Console(file=sys.stdout)
    # Where not even that fits, the terminal breaks the lines, and nothing is cut off.
    console.width = max(console.width, least)
    console.print(table)


def _print_plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len, set_cell_size

    lines = [[column.upper() for column in columns], *rows]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = (set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())


def print_error(error: MunimentError, *, as_json: bool) -> None:
    """Print an error on stderr: one line, or an object."""
    if as_json:
        told = {
            "reason": error.reason,
            "message": error.message,
            "field": error.field,
            "fix": error.fix,
        }
        print(json.dumps({"error": told}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"muniment: {printable(str(error))}", file=sys.stderr)


def print_warning(text: str, *, as_json: bool) -> None:
    """Print on stderr what makes a result less than it seems: one line, or an object."""
    if as_json:
        print(json.dumps({"warning": text}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"muniment: warning: {printable(text)}", file=sys.stderr)


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Say on stderr, if that is a terminal, what is being waited for.

    What the block is given takes how far it is.
    """
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=sys.stderr).status(escape(what)) as status:

        def report(step: str, done: int, total: int) -> None:
            share = f" {100 * done // total} %" if total else ""
            status.update(escape(f"{what}: {step}{share}"))

        yield report
