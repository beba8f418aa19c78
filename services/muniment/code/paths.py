"""Paths as texts that harm nobody: bytes that are no UTF-8 and what does not print are escaped.

Git and the disk know files by bytes, which pathlib does not take; rows, answers and maps need text
on one line.
"""

from __future__ import annotations

import os
import re
import stat

__all__ = ["exists", "folder_of", "is_folder", "raw_root", "shown", "under"]

_ESCAPED_BYTE = re.compile(rb"\\x([0-9a-f]{2})")


def shown(raw: bytes) -> str:
    """The path as text that prints on one line."""
    text = raw.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def raw_root(root: str) -> bytes:
    """The folder that a call names, as the disk knows it: escaped bytes are what they stand for."""
    literal = os.fsencode(root)
    if b"\\x" not in literal or exists(literal):
        return literal
    return _ESCAPED_BYTE.sub(lambda found: bytes([int(found[1], 16)]), literal)


def under(folder: bytes, name: bytes) -> bytes:
    """The path of what has that name in the folder; the empty folder is where one is."""
    return folder + b"/" + name if folder and name else folder or name


def folder_of(path: bytes) -> bytes:
    """The folder that it is in; empty where that is where one is."""
    return path.rpartition(b"/")[0]


def exists(path: bytes) -> bool:
    """Whether anything is there, be it a link to nowhere."""
    try:
        os.lstat(path)
    except (OSError, ValueError):
        return False
    return True


def is_folder(path: bytes) -> bool:
    """Whether a folder is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
