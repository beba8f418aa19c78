"""Names that agents give: categories, names and keys.

What may be written is narrower than what can be read: a name that came from elsewhere stays
within reach.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Literal

from muniment.kit.errors import InvalidArgumentError
from muniment.kit.fence import undisarmed
from muniment.kit.store import Reader, Table
from muniment.memory.records.limits import IDENTIFIER_LIMIT_CHARACTERS

__all__ = ["check_identifier", "kept_key", "spellings"]

_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")

_FORBIDDEN = '<>|;"`'


def check_identifier(field: str, value: str) -> str:
    """The name in the form that is kept (Unicode NFC).

    Raises:
        InvalidArgumentError: It is empty, too long, or has what no name may have.
    """
    kept = unicodedata.normalize("NFC", value)
    if not kept:
        raise _refused(field, "cannot be empty", "IDENTIFIER_EMPTY")
    if len(kept) > IDENTIFIER_LIMIT_CHARACTERS:
        raise _refused(
            field,
            f"too long ({len(kept)} chars, max {IDENTIFIER_LIMIT_CHARACTERS})",
            "IDENTIFIER_TOO_LONG",
        )
    for index, character in enumerate(kept):
        if ord(character) < 0x20 or ord(character) == 0x7F:
            raise _refused(
                field,
                "contains a forbidden control character"
                f" (code point 0x{ord(character):02x} at index {index})",
                "IDENTIFIER_FORBIDDEN",
            )
    if ".." in kept:
        raise _refused(field, "contains a forbidden path sequence ('..')", "IDENTIFIER_FORBIDDEN")
    found = sorted(set(kept) & set(_FORBIDDEN))
    if found:
        raise _refused(
            field, f"contains forbidden character(s): {' '.join(found)}", "IDENTIFIER_FORBIDDEN"
        )
    return kept


def spellings(value: str) -> list[str]:
    """The names that may be meant, likeliest first.

    As it was before it was disarmed for display, so that a name that was shown leads back to its
    own record; as given; and both in either form of Unicode.
    """
    shown = undisarmed(value)
    forms = [unicodedata.normalize(form, one) for form in _FORMS for one in (shown, value)]
    return list(dict.fromkeys((shown, value, *forms)))


def kept_key(reader: Reader, table: Table[Any], as_given: str, wanted: str) -> str:
    """The key that the table has already, where that may be meant; else the one that is wanted."""
    known = (key for key in spellings(as_given) if reader.has(table, key))
    return next(known, wanted)


def _refused(field: str, message: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, reason=reason, field=field)
