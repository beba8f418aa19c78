"""What the commands on records share: the tenant, bodies, and how a record is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.files import PIPE, not_utf8
from muniment.cli.output import print_text, printable, to_the_second
from muniment.kit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from muniment.cli.records_answers import Records

__all__ = [
    "AsText",
    "Body",
    "Category",
    "Tenant",
    "beginning",
    "body_json",
    "compact",
    "confirm",
    "print_record",
    "records_of",
    "second",
    "standard_input",
    "utf8_text",
]

_CELL_CHARACTERS = 80

Body = Annotated[
    str | None,
    typer.Argument(
        metavar="BODY",
        help="A JSON object or list, else a text; without it, or with `-`, standard input.",
    ),
]
AsText = Annotated[
    bool, typer.Option("--text", help="Keep the body as a text, whatever it looks like.")
]
Category = Annotated[
    str | None, typer.Option("--category", metavar="C", help="Only of this category.")
]
Tenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        envvar=["MUNIMENT_TENANT", "KINT_TENANT"],
        help="Whose records [default: the setting `tenant`].",
    ),
]
"""The option that every command on records has."""


def records_of(context: typer.Context, tenant: str | None) -> Records:
    """What asks the memory about that tenant's records, or those of the setting."""
    # gRPC and the contracts take half a second to import, and other commands do without.
    from muniment.cli.records_answers import Records

    return Records.of(context.obj, tenant)


def _text(given: str | None) -> str:
    """The argument, or standard input where that is `-` or nothing was given."""
    if given is None or given == PIPE:
        return standard_input()
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise not_utf8(error.start, "body") from error
    return given


def body_json(given: str | None, *, as_text: bool) -> str:
    """The body as JSON: an object or a list where it is one, else a text.

    What begins as one and is none is refused, since it would be kept as a text unnoticed.
    """
    text = _text(given)
    if as_text or not text.lstrip().startswith(("{", "[")):
        return json.dumps(text, ensure_ascii=False)
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidArgumentError(
            f"begins as JSON and is none{where}",
            reason="BODY_NO_JSON",
            field="body",
            fix="correct it, or give --text to keep it as a text",
        ) from error
    return text


def standard_input() -> str:
    """What is piped in."""
    if sys.stdin.isatty():
        raise typer.BadParameter("give one, or pipe one in", param_hint="BODY")
    return utf8_text(sys.stdin.buffer.read())


def utf8_text(raw: bytes, *, field: str = "body") -> str:
    """The text that the bytes are.

    Raises:
        InvalidArgumentError: They are no UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error.start, field) from error


def compact(value: Any) -> str:
    """The JSON value on one line; a text, or one that was wrapped, as it is."""
    if isinstance(value, dict) and set(value) == {"value"}:
        value = value["value"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def beginning(value: Any) -> str:
    """The beginning of the value, for a cell of a table."""
    text = compact(value)
    return text if len(text) <= _CELL_CHARACTERS else f"{text[:_CELL_CHARACTERS]}…"


def second(time: str | None) -> str:
    """The time to the second; nothing where it is not known."""
    return to_the_second(time) if time else ""


def confirm(question: Callable[[], str], *, yes: bool) -> None:
    """Ask on a terminal; elsewhere demand `--yes`.

    Raises:
        InvalidArgumentError: Nobody can be asked.
    """
    if yes:
        return
    asked = question()
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            asked,
            reason="RECORDS_UNCONFIRMED",
            field="--yes",
            fix="give it to say that you mean it",
        )
    # On stderr, since stdout is for the result.
    print(f"{printable(asked)}; go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print_text("nothing was changed")
        raise typer.Exit(1)


def print_record(told: dict[str, Any]) -> None:
    """Print a record: what it is, and under it the body."""
    shown = [
        (name, value)
        for name, value in told.items()
        if name not in ("body", "entity") and value is not None
    ]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        print_text(f"{name:<{width}}  {printable(text)}")
    if "entity" in told:
        print_text("")
        print_record(told["entity"])
    elif "body" in told:
        body = told["body"]
        is_text = isinstance(body, str)
        print_text("")
        print_text(body if is_text else json.dumps(body, indent=2, ensure_ascii=False))
