"""Arguments of a tool call, checked against the tool's schema.

A wrong argument is a JSON-RPC error that names the argument and says what it takes; its value is
not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from muniment.kit.errors import InvalidArgumentError

__all__ = ["checked_arguments"]

# Python refuses to read a number of thousands of digits.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,100}")


def checked_arguments(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], *, keep_empty: bool = False
) -> Mapping[str, Any]:
    """The arguments, with whole numbers as int, and absent where they were null or empty.

    With `keep_empty` an empty text is a value like any other.

    Raises:
        InvalidArgumentError: One is missing, unknown or of the wrong kind.
    """
    properties = schema["properties"]
    given = {
        name: _as_integer(properties.get(name, {}), value)
        for name, value in arguments.items()
        # Models send every optional argument, as null or "" where they do not use it.
        if not (value is None or (value == "" and not keep_empty))
        or name not in properties
        or name in schema.get("required", ())
    }
    errors = sorted(Draft202012Validator(schema).iter_errors(given), key=_order)
    if errors:
        raise _refusal(errors[0], schema, given)
    return given


def _as_integer(schema: Mapping[str, Any], value: Any) -> Any:
    """A number that a host sent as text or as 8.0."""
    if schema.get("type") != "integer":
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value)
    return value


def _order(error: ValidationError) -> tuple[int, str]:
    # An unknown name explains a missing one best.
    first = {"additionalProperties": 0, "required": 1}
    return (first.get(str(error.validator), 2), error.message)


def _refusal(
    error: ValidationError, schema: Mapping[str, Any], given: Mapping[str, Any]
) -> InvalidArgumentError:
    properties = schema["properties"]
    takes = ", ".join(properties) or "no arguments"
    if error.validator == "required":
        missing = next(name for name in schema["required"] if name not in given)
        return InvalidArgumentError(
            f"is missing; it takes {_takes(properties[missing])}",
            reason="ARGUMENT_MISSING",
            field=missing,
        )
    if error.validator == "additionalProperties":
        unknown = min(name for name in given if name not in properties)
        return InvalidArgumentError(
            f"is not an argument of this tool, which takes {takes}",
            reason="ARGUMENT_UNKNOWN",
            field=unknown[:100],
        )
    name = str(error.absolute_path[0]) if error.absolute_path else "arguments"
    return InvalidArgumentError(
        f"must be {_takes(properties.get(name, {}))}", reason="ARGUMENT_WRONG", field=name
    )


def _takes(schema: Mapping[str, Any]) -> str:
    """What an argument takes, in words."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    kinds = {
        "string": "text",
        "integer": "a whole number",
        "boolean": "true or false",
        "object": "an object",
    }
    kind = schema.get("type")
    if isinstance(kind, list):
        # The first is meant, the others are forgiven.
        kind = kind[0]
    if kind == "array":
        return "a list of texts" if schema["items"].get("type") == "string" else "a list"
    words = kinds.get(str(kind), "any JSON value")
    if schema.get("minLength"):
        words += " that is not empty"
    if "minimum" in schema:
        words += f" of at least {schema['minimum']}"
    return words
