"""Values: JSON texts as they are kept."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from muniment.kit.errors import InvalidArgumentError
from muniment.kit.nesting import is_deeper
from muniment.memory.records.limits import BODY_LIMIT_BYTES, BODY_LIMIT_DEPTH

__all__ = ["check_size", "compact", "kept_body", "kept_object", "parsed", "parsed_object"]


def kept_body(field: str, text: str) -> str:
    """The JSON text of a body as it is kept: compact, and an object or a list.

    Any other value is wrapped as `{"value": …}`.

    Raises:
        InvalidArgumentError: It is no JSON (RFC 8259), too long or nested too deep.
    """
    value = parsed(field, text)
    if not isinstance(value, dict | list):
        value = {"value": value}
    return check_size(field, compact(field, value))


def kept_object(field: str, text: str) -> str:
    """As `kept_body`, for a value that has to be an object.

    Raises:
        InvalidArgumentError: Also where it is none.
    """
    return check_size(field, compact(field, parsed_object(field, text)))


def parsed_object(field: str, text: str) -> dict[str, Any]:
    """As `parsed`, for a value that has to be an object.

    Raises:
        InvalidArgumentError: Also where it is none.
    """
    value = parsed(field, text)
    if not isinstance(value, dict):
        raise InvalidArgumentError("must be an object", reason="BODY_NO_OBJECT", field=field)
    return value


def parsed(field: str, text: str) -> Any:
    """What the JSON text says.

    Raises:
        InvalidArgumentError: It is no JSON (RFC 8259), or nested too deep.
    """

    def refuse(name: str) -> NoReturn:
        raise _refused(field, f"has {name}, which JSON does not know", "BODY_NO_JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise _too_deep(field) from None
    except ValueError as error:
        raise _refused(field, f"is no JSON: {error}", "BODY_NO_JSON") from None
    if is_deeper(value, BODY_LIMIT_DEPTH):
        raise _too_deep(field)
    return value


def compact(field: str, value: Any) -> str:
    """The value as JSON without blanks.

    Raises:
        InvalidArgumentError: It has a number or character that JSON or UTF-8 cannot carry.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise _refused(
            field, f"has half a surrogate pair at character {error.start}", "BODY_NO_JSON"
        ) from None
    except ValueError:
        raise _refused(field, "has a number that JSON does not know", "BODY_NO_JSON") from None
    except RecursionError:
        raise _too_deep(field) from None
    return text


def check_size(field: str, text: str) -> str:
    """The text itself.

    Raises:
        InvalidArgumentError: It is too long.
    """
    size = len(text.encode())
    if size > BODY_LIMIT_BYTES:
        raise _refused(
            field,
            f"is too large ({size // 1024} KB; max {BODY_LIMIT_BYTES // 1024} KB per value).",
            "BODY_TOO_LARGE",
        )
    return text


def _too_deep(field: str) -> InvalidArgumentError:
    return _refused(field, f"is nested deeper than {BODY_LIMIT_DEPTH} levels", "BODY_TOO_DEEP")


def _refused(field: str, message: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, reason=reason, field=field)
