"""The paths that a text shows, so that recall can be restricted to a file.

Sure are diff headers. Any other word that looks like a path counts when the project has such a
file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from muniment.memory.limits import PATHS_LIMIT

__all__ = ["path_suffixes", "relative_path", "shown_paths"]

_DIFF_HEADER = re.compile(r"^(?:\+\+\+|---) (?:[ab]/)?([^\t\n\r]+)", re.MULTILINE)
_GIT_HEADER = re.compile(r"^diff --git a/(\S+) b/(\S+)", re.MULTILINE)
# A name with an extension, or names joined by slashes.
_PATH_LIKE = re.compile(
    # From where a run of such characters starts only: from each of its places, a blob would take
    # the square of its length.
    r"(?<![\w/.@+-])(?:/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w{1,12}\b|(?:[\w.@+-]+/)+[\w.@+-]+)"
)

_CANDIDATES_LIMIT = 2000


def shown_paths(text: str, root: str, exists: Callable[[str], bool]) -> list[str]:
    """Paths relative to the root, in order of appearance, at most PATHS_LIMIT.

    `exists(relative path)` says whether the project has the file; without a root only diff
    headers count.
    """
    found: dict[str, None] = {}
    for header in _diff_paths(text):
        found.setdefault(header)
    if root:
        candidates = dict.fromkeys(match.group() for match in _PATH_LIKE.finditer(text))
        for candidate in list(candidates)[:_CANDIDATES_LIMIT]:
            relative = relative_path(candidate, root)
            if relative and relative not in found and exists(relative):
                found.setdefault(relative)
    return list(found)[:PATHS_LIMIT]


def relative_path(path: str, root: str) -> str | None:
    """The path from the root, with `/` between parts; None where it leads out of it."""
    if root and posixpath.isabs(path):
        path = posixpath.relpath(path, root)
    normal = posixpath.normpath(path)
    outside = normal in ("", ".", "..") or normal.startswith(("../", "/"))
    return None if outside else normal


def path_suffixes(path: str) -> Iterator[str]:
    """The path and each end of it that starts at a part: `src/app.py`, `app.py`."""
    parts = path.split("/")
    for start in range(len(parts)):
        yield "/".join(parts[start:])


def _diff_paths(text: str) -> Iterator[str]:
    if "--- " not in text and "diff --git " not in text:
        return
    headers = [*_GIT_HEADER.findall(text), *((one,) for one in _DIFF_HEADER.findall(text))]
    for group in headers:
        for path in group:
            normal = relative_path(path.strip(), "")
            if normal and normal != "dev/null":
                yield normal
