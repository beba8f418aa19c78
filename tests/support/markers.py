"""Finds what could pass for the fence's markers; knows nothing of how the product looks for it.

It is stricter than any reader: of a text only letters and digits are left, in their plainest form,
and escapes of JSON are taken for what they stand for.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

__all__ = ["demand_fenced", "markers_in"]


# What looks like another letter than its name says.
_LOOKS = {
    **dict(zip("вснрухѕіј", "bchpyxsij", strict=True)),
    **dict(zip("ВСНРУХЅІЈ", "bchpyxsij", strict=True)),
    **dict(zip("ΝΗΡΥΧΒΤΜΕΟΙ", "nhpyxbtmeoi", strict=True)),
    **dict(zip("νηρυχоОԍԁԌ", "nnpuxoogdg", strict=True)),
    **dict(zip("тТмМеЕкК", "ttmmeekk", strict=True)),
}

_APART = "\u2e17"
"""The sign with which the product takes a marker in a name apart: nobody reads on over it."""


def markers_in(text: str) -> list[str]:
    """Every marker that can be read in the text."""
    text = re.sub(
        r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)).replace("\\", " "), text
    )
    text = re.sub(r"\\[nrtbf\"/\\]", " ", text)
    plain = text.translate(_PLAIN)
    return re.findall(r"untrustedmemorycontext(?:begin|end)", plain)


def _plain(character: str) -> str:
    if character == _APART:
        return character
    if character in _LOOKS:
        return _LOOKS[character]
    folded = unicodedata.normalize("NFKD", character).casefold()
    return "".join(one for one in folded if one.isalnum() and one not in "\u115f\u1160\u3164")


class _Plain(dict[int, str]):
    """The plainest form of each character, found at its first use."""

    def __missing__(self, code: int) -> str:
        self[code] = _plain(chr(code))
        return self[code]


_PLAIN = _Plain()


def demand_fenced(result: dict[str, Any]) -> None:
    """Fail where an answer has a marker besides the two that its own block names."""
    (item,) = result["content"]
    assert item["type"] == "text"
    told = json.loads(item["text"])
    if not result.get("isError"):
        assert result["structuredContent"] == told
    block = told.pop("_untrusted_context", None)
    if block is not None:
        nonce = block["nonce"]
        assert re.fullmatch("[0-9a-f]{12}", nonce)
        assert block["begin"] == f"[UNTRUSTED MEMORY CONTEXT BEGIN:{nonce}]"
        assert block["end"] == f"[UNTRUSTED MEMORY CONTEXT END:{nonce}]"
        assert markers_in(block["note"]) == []
    for text in _texts(told):
        assert markers_in(text) == [], text[:300]
    # And spread over keys and values, as the model gets to read them.
    assert markers_in(json.dumps(told, ensure_ascii=False)) == []


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
