"""Text of others as it may be shown: nothing in it drives a terminal or turns a line around."""

from __future__ import annotations

__all__ = ["DIRECTIONS", "printable"]

DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Line ends and changes of direction that Unicode has besides: text would not stand as it is."""

_CONTROLS = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    **{code: f"\\u{code:04x}" for code in DIRECTIONS},
}
_CONTROLS_BUT_LAYOUT = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\n\t"}


def printable(text: str, *, one_line: bool = True) -> str:
    """The text with control characters spelled out; line ends and tabs too, for `one_line`."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_CONTROLS if one_line else _CONTROLS_BUT_LAYOUT)
