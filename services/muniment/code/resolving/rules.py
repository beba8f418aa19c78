"""In what languages differ, as far as the meaning of a name is concerned."""

from __future__ import annotations

import builtins
import posixpath
from dataclasses import dataclass
from functools import cache

__all__ = ["Rules", "location_of", "rules_of"]


@dataclass(frozen=True)
class Rules:
    """What a language lets a name mean."""

    family: str
    """Languages whose files know each other's names."""
    index_names: frozenset[str] = frozenset()
    """Files that stand for their folder when it is imported."""
    sees_members: bool = True
    """Inside a type, its members are known by their bare names."""
    shares: str = ""
    """What else shares top-level names without an import: `folder`, `package` or `family`."""
    foreign: frozenset[str] = frozenset()
    """Names that the language brings along."""


_PYTHON = Rules(
    "python", frozenset({"__init__"}), sees_members=False, foreign=frozenset(dir(builtins))
)
_SCRIPT = Rules("script", frozenset({"index"}), sees_members=False)
_RUST = Rules("rust", frozenset({"mod", "lib", "main"}), sees_members=False)
_GO = Rules("go", sees_members=False, shares="folder")
_JVM = Rules("jvm", shares="package")
_C = Rules("c", shares="family")

_BY_LANGUAGE = {
    "python": _PYTHON,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "javascript": _SCRIPT,
    "jsx": _SCRIPT,
    "rust": _RUST,
    "go": _GO,
    "java": _JVM,
    "kotlin": _JVM,
    "scala": _JVM,
    "c": _C,
    "cpp": _C,
}


@cache
def rules_of(language: str) -> Rules:
    """The rules of a language; of one that has none of its own: all its files share names."""
    return _BY_LANGUAGE.get(language) or Rules(language, shares="family")


def location_of(path: str, rules: Rules) -> str:
    """What an import calls the file: its path without extension, or its folder's."""
    folder, name = posixpath.split(path)
    stem = name.partition(".")[0] or name
    if rules.family == "script" and name.count(".") > 1:
        stem = (
            name.removesuffix(".ts").removesuffix(".d")
            if name.endswith(".d.ts")
            else (posixpath.splitext(name)[0])
        )
    return folder if stem in rules.index_names else posixpath.join(folder, stem)
