"""Files that a command reads or writes for whoever calls it, and the pipe in place of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.files import replacing_file

__all__ = ["PIPE", "not_utf8", "readable", "unusable", "utf8_argument", "writable"]

PIPE = "-"
"""Names standard input or output."""


@contextmanager
def writable(file: str) -> Iterator[BinaryIO]:
    """Where to write: standard output, or a file that is whole or not there."""
    if file == PIPE:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    if path.exists() and not path.is_file():
        raise PreconditionError(
            f"{file} is no file", reason="FILE_UNUSABLE", field="file", fix="name a file, or `-`"
        )
    try:
        with replacing_file(path) as target:
            yield target
    except OSError as error:
        raise unusable(file, error) from error


@contextmanager
def readable(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """What to read, and how long it is; 0 where that is not known."""
    if file == PIPE:
        if sys.stdin.isatty():
            raise typer.BadParameter("pipe something in, or name a file", param_hint="FILE")
        yield sys.stdin.buffer, 0
        return
    try:
        with Path(file).open("rb") as source:
            yield source, Path(file).stat().st_size
    except OSError as error:
        raise unusable(file, error) from error


def not_utf8(position: int, field: str) -> InvalidArgumentError:
    """The error that a text is none."""
    return InvalidArgumentError(
        f"is not UTF-8 at position {position}",
        reason="CONTENT_NOT_UTF8",
        field=field,
        fix="convert it first, with iconv for example",
    )


def utf8_argument(text: str, field: str) -> str:
    """The argument, if the shell handed in UTF-8.

    Raises:
        InvalidArgumentError: It did not.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise not_utf8(error.start, field) from error
    return text


def unusable(file: str, error: OSError) -> PreconditionError:
    """The error that a file cannot be read or written."""
    return PreconditionError(
        f"{file} cannot be used: {error.strerror or error}",
        reason="FILE_UNUSABLE",
        field="file",
        fix="check its name, its folder and the disk's space",
    )
