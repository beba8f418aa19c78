"""Plants texts, and searches files for them in each form in which a program might leave them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

__all__ = ["Garden", "forms", "traces"]

_LETTERS = "bcdfghjklmnpqrstvwxz"
_LENGTH = 14


class Garden:
    """Makes texts that stand nowhere else, and remembers them."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self.planted: dict[str, str] = {}
        """What was planted, by what it was planted as."""

    def plant(self, what: str) -> str:
        """A word for that use: consonants, so that no folding, stemming or splitting hides it."""
        word = "".join(self._random.choice(_LETTERS) for _ in range(_LENGTH))
        assert what not in self.planted
        self.planted[what] = word
        return word


def forms(text: str) -> Iterator[bytes]:
    """The text as it may stand in a file."""
    plain = text.encode()
    yield plain
    yield plain.upper()
    yield text.encode("utf-16-le")
    yield text.encode("utf-16-be")
    yield plain[::-1]
    yield plain.hex().encode()
    once = json.dumps(text).strip('"')
    yield once.encode()
    yield json.dumps(once).strip('"').encode()
    yield quote(text).encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            # What stands before and behind it mixes into the first and the last group.
            encoded = encode(b"\0" * shift + plain).rstrip(b"=")
            yield encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4]


def traces(folders: Iterable[Path], texts: Iterable[str]) -> list[str]:
    """Where one of the texts is found, in contents and names of files; links are not followed."""
    needles = {needle: text for text in texts for needle in forms(text)}
    found = []
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        contents = [bytes(path)]
        if path.is_file() and not path.is_symlink():
            contents.append(path.read_bytes())
        found += [
            f"{text} is in {path}"
            for needle, text in needles.items()
            if any(needle in content for content in contents)
        ]
    return found
