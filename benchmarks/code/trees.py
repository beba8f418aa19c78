"""Real trees of code from the registries, pinned, and larger ones made of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.counting.packages import Package, fetch, members

__all__ = ["PLACE", "TREES", "Tree", "new_folder", "unpack", "unpack_copies"]

PLACE = Path(__file__).resolve().parents[2] / "build" / "bench-code"
"""Where packages and peers are kept."""


@dataclass(frozen=True)
class Tree:
    """What of a package is read, and as what."""

    name: str
    language: str
    """As ctags, ast-grep and aider know it."""
    endings: tuple[str, ...]
    """Of the files whose bytes are counted."""
    package: Package
    folder: str = ""
    """The part of the package that is unpacked."""


TREES: Sequence[Tree] = (
    Tree(
        "django",
        "python",
        (".py",),
        Package(
            "sdist",
            "Django",
            "5.1.4",
            "BSD-3-Clause",
            "de450c09e91879fa5a307f696e57c851955c910a438a35e6b4c895e86bedc82a",
        ),
    ),
    Tree(
        "effect",
        "typescript",
        (".ts",),
        Package(
            "npm",
            "effect",
            "3.19.0",
            "MIT",
            "e2835a391529928bfcad35c500bc66cba19ceb2733deeb0ea8711cfdb14b4db1",
        ),
        folder="src/",
    ),
    Tree(
        "nautilus",
        "rust",
        (".rs",),
        # Its metadata needs no Rust, so that pip can fetch it everywhere.
        Package(
            "sdist",
            "nautilus_trader",
            "1.218.0",
            "LGPL-3.0-or-later",
            "d35047a87cddf23bc70049b045ad7a2587ca3ea12c9c804c6e51ce50864697b6",
        ),
        folder="crates/",
    ),
)


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder that is in no repository, of which it might be an ignored part."""
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        yield Path(folder).resolve()


def unpack(tree: Tree, folder: Path) -> int:
    """Write the tree's files into the folder; the bytes of those that are code."""
    code_bytes = 0
    for name, content in members(fetch(tree.package, PLACE)):
        if not name.startswith(tree.folder):
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name.endswith(tree.endings):
            code_bytes += len(content)
    return code_bytes


def unpack_copies(tree: Tree, folder: Path, least_files: int) -> list[Path]:
    """As many copies side by side as have so many files of code; those files."""
    one = folder / "copy_0"
    unpack(tree, one)
    made = [one]
    found = _code_files(tree, one)
    while len(made) * len(found) < least_files:
        made.append(folder / f"copy_{len(made)}")
        shutil.copytree(one, made[-1])
    return [path for copy in made for path in _code_files(tree, copy)]


def _code_files(tree: Tree, folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.endswith(tree.endings))
