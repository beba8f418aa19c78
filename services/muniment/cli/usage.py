"""Wrong usage, told in the words of this house instead of the parser's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer

from muniment.kit.errors import InvalidArgumentError

__all__ = ["wrong_usage"]

_TEXTS = frozenset({"query", "text"})
"""Arguments that are likely to be given as several words."""

_BOUNDS = {
    "greater_than_equal": "must be at least {ge}",
    "int_parsing": "must be a whole number",
    "less_than_equal": "must be at most {le}",
}
"""What a value must be, by the kind of pydantic's complaint."""


def wrong_usage(error: typer.TyperException) -> InvalidArgumentError:
    """What the parser found, as an error that blames an option or a variable by its name."""
    # Typer gives no public names to the kinds of its errors; it documents their attributes.
    context: Any = getattr(error, "ctx", None)
    message, fix = " ".join(error.format_message().split()).rstrip("."), None
    field = _blamed(error, context) if type(error) is typer.BadParameter else None
    if field is not None:
        message = _complaint(error)
    elif (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        message = str(error.message)
        fix = _meant(option, error.possibilities or ())
    elif message.startswith("Got unexpected extra argument"):
        message = message.removeprefix("Got unexpected extra argument(s) (").removesuffix(")")
        message = f"too many arguments: {message}"
        if any(parameter.name in _TEXTS for parameter in context.command.params):
            fix = f'quote the text: {context.command_path} "..."'
    path = context.command_path if context else "muniment"
    ways = [*([fix] if fix else []), f"`{path} --help` shows how it is used"]
    return InvalidArgumentError(message, reason="USAGE", field=field, fix="; ".join(ways))


def _blamed(error: Any, context: Any) -> str | None:
    """The option, argument or variable that a wrong value came from."""
    if error.param is None:
        return str(error.param_hint) if error.param_hint else None
    source = context.get_parameter_source(error.param.name)
    if source is not None and source.name == "ENVIRONMENT":
        return next((name for name in error.param.envvar if os.environ.get(name)), None)
    return str(max(error.param.opts, key=len))


def _complaint(error: Any) -> str:
    """What is wrong with a value. Where pydantic found it, its words speak of its own types."""
    if error.__cause__ is None:
        return str(error.message).rstrip(".")
    (first, *_) = error.__cause__.errors()
    context = first.get("ctx", {})
    if first["type"] in _BOUNDS:
        return _BOUNDS[first["type"]].format(**context)
    return str(context.get("error", first["msg"])).rstrip(".")


def _meant(option: str, possible: Sequence[str]) -> str | None:
    """The option that was meant; dashes alone make none alike."""
    names = {name.lstrip("-"): name for name in possible}
    close = get_close_matches(option.lstrip("-"), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else None
