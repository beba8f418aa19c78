"""The repository as its own tests see it: the files git knows, and hand-written Python, parsed.

Reads the working tree, so what is not committed yet counts as well. Everything is read once.
"""

from __future__ import annotations

import ast
import fnmatch
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

__all__ = [
    "ROOT",
    "SOURCE_ROOTS",
    "Module",
    "TextFile",
    "houses_modules",
    "parse",
    "python_modules",
    "text_files",
    "tracked_paths",
]

ROOT = Path(__file__).resolve().parents[3]

SOURCE_ROOTS = ("protos", "services", "mcp_bridge")
"""The roots of the namespace package."""

_GENERATED = (
    "*_pb2.py",
    "*_pb2.pyi",
    "*_pb2_grpc.py",
    "*_pb2_grpc.pyi",
    "requirements.lock",
    "package-lock.json",
    "mcp_bridge/muniment/bridge/manifest.json",
)

# What examples, benchmarks and the embedding model work on; nobody of this house wrote it to be
# read as code.
_DATA = ("*.jsonl", "*/data/*", "examples/*/repository/*", "LICENSE", "*-vocab.txt")


@dataclass(frozen=True)
class TextFile:
    """A tracked text file."""

    path: str
    """Relative to the root, with `/`."""
    text: str

    @property
    def generated(self) -> bool:
        return _matches(self.path, _GENERATED)

    @property
    def data(self) -> bool:
        return _matches(self.path, _DATA)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")


@dataclass(frozen=True)
class Module(TextFile):
    """A hand-written Python file."""

    tree: ast.Module

    @property
    def name(self) -> str:
        """Its dotted name: `muniment.kit.paths`, `tests.unit.house.source`."""
        parts = list(Path(self.path).with_suffix("").parts)
        if parts[0] in SOURCE_ROOTS:
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    @property
    def in_house(self) -> bool:
        """Whether it is shipped."""
        return self.path.split("/")[0] in SOURCE_ROOTS

    @property
    def in_tests(self) -> bool:
        return self.path.startswith("tests/")


def parse(path: str, text: str) -> Module:
    """The module that a file at this path with this text would be."""
    return Module(path, text, ast.parse(text, path))


@cache
def tracked_paths() -> tuple[str, ...]:
    """Every file that is committed or would be, sorted; ignored and deleted ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = {path for path in listed.split("\0") if path}
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


@cache
def text_files() -> tuple[TextFile, ...]:
    """The tracked files that are text, generated ones and data included."""
    return tuple(_read_text_files())


@cache
def python_modules() -> tuple[Module, ...]:
    """The hand-written Python: source, tests, examples, benchmarks."""
    return tuple(
        parse(file.path, file.text)
        for file in text_files()
        if file.path.endswith(".py") and not file.generated and not file.data
    )


def houses_modules() -> tuple[Module, ...]:
    """The hand-written Python that is shipped."""
    return tuple(module for module in python_modules() if module.in_house)


def _read_text_files() -> Iterator[TextFile]:
    for path in tracked_paths():
        content = (ROOT / path).read_bytes()
        if b"\0" not in content:
            yield TextFile(path, content.decode("utf-8"))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
