"""Texts of packages, cut to turns and sorted by kind.

Three parts that share no package: of `vocabulary` the pieces are made, on `weights` it is measured
what each piece costs, and `held_out` is for the errors alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks.counting.packages import Package, fetch, members

__all__ = ["KINDS", "Part", "Source", "Turn", "turns"]

KINDS = ("prose", "code", "json", "cjk", "latin", "scripts")
"""English prose, code, JSON, Chinese with Japanese and Korean, other languages in Latin letters,
and in other scripts."""

Part = Literal["vocabulary", "weights", "held_out"]

_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_TAG = re.compile(r"<[^>]*>")
_BLANK = re.compile(r"\n\s*\n+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")


@dataclass(frozen=True)
class Source:
    """Some files of a package."""

    kind: str
    """One of KINDS, or `language`: the kind is told by the letters."""
    pattern: str
    """Of the files' paths inside the package."""
    characters: int
    """At most so many are taken, from all over the files."""
    package: Package | None
    """None is this repository."""
    read: Literal["plain", "foreign", "page"] = "plain"
    """`foreign`: string literals that are not ASCII, as catalogues of messages have them; `page`:
    HTML without its tags."""


@dataclass(frozen=True)
class Turn:
    """A piece of text of the size that turns have."""

    kind: str
    origin: str
    text: str


def turns(source: Source, size: int) -> Iterator[Turn]:
    """The source's text in turns of so many characters, the same ones every time."""
    name = source.package.name if source.package else "muniment"
    found = [
        Turn(
            _kind_of(text) if source.kind == "language" else source.kind,
            f"{name}/{path}:{start}",
            text[start : start + size],
        )
        for path, text in _texts(source)
        for start in range(0, len(text), size)
        if len(text) - start >= size // 3
    ]
    found.sort(key=lambda turn: hashlib.sha256(turn.origin.encode()).digest())
    left = source.characters
    for turn in found:
        if left <= 0:
            return
        left -= len(turn.text)
        yield turn


def _texts(source: Source) -> Iterator[tuple[str, str]]:
    wanted = re.compile(source.pattern)
    for path, raw in _files(source.package):
        if wanted.search(path):
            try:
                text = _READ[source.read](raw.decode())
            except UnicodeDecodeError:
                continue
            yield path, text


def _files(package: Package | None) -> Iterator[tuple[str, bytes]]:
    if package is None:
        root = Path(__file__).resolve().parents[2]
        for folder in ("docs", "services", "mcp_bridge", "tests/data"):
            for path in sorted((root / folder).rglob("*")):
                if path.is_file():
                    yield path.relative_to(root).as_posix(), path.read_bytes()
        return
    yield from members(fetch(package))


def _foreign(text: str) -> str:
    lines = []
    for literal in _LITERAL.findall(text):
        try:
            line = json.loads(f'"{literal}"')
        except ValueError:
            line = literal
        if line and not line.isascii():
            lines.append(line)
    return "\n".join(lines)


def _page(text: str) -> str:
    return _BLANK.sub("\n\n", _TAG.sub("", text)).strip()


_READ: dict[str, Callable[[str], str]] = {"plain": str, "foreign": _foreign, "page": _page}


@cache
def _kind_of(text: str) -> str:
    letters = sum(map(str.isalpha, text)) or 1
    if len(_CJK.findall(text)) > 0.3 * letters:
        return "cjk"
    return "latin" if len(_LATIN.findall(text)) > 0.6 * letters else "scripts"
