"""Working trees for tests, and an index of them with real parser processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muniment.code.answers import Symbols, find_symbols
from muniment.code.export import export_lines
from muniment.code.freshness import Answered, answer
from muniment.code.readers import Readers
from muniment.code.schema import SCHEMA
from muniment.code.trees import Trees
from muniment.kit.clock import SystemClock
from muniment.kit.store import Store, StoreOptions
from muniment.kit.store.jobs import ThreadedLoop
from muniment.v1 import code_pb2
from tests.support.homes import a_folder
from tests.support.stores import QuickDisk, protection
from tests.waiting import until

__all__ = [
    "FILE_LIMIT_BYTES",
    "PROJECT",
    "Repository",
    "a_code_store",
    "an_index",
    "exported",
    "parser_processes",
    "symbols",
]

PROJECT = "proj_0000000000000001"
FILE_LIMIT_BYTES = 100_000

_MAP_LIMIT_BYTES = 256 * 1024**2
_AUTHOR = ("-c", "user.name=Test", "-c", "user.email=test@example.org")


class Repository:
    """A folder with files, and git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        """What git says."""
        done = subprocess.run(
            ["git", *_AUTHOR, *words], cwd=self.path, check=True, capture_output=True
        )
        return done.stdout.decode()

    def write(self, **files: str) -> None:
        """Files by name with `__` for `/`, of which each gets the ending `.py`."""
        for name, content in files.items():
            path = self.path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def commit(self) -> None:
        """Everything, as it is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")


@contextmanager
def a_code_store(folder: Path, *, sealed: bool = False) -> Iterator[Store]:
    """The store in that folder, for the block."""
    options = StoreOptions(map_limit_bytes=_MAP_LIMIT_BYTES, disk=QuickDisk(), loop=ThreadedLoop())
    store = Store(folder, SCHEMA, protection(sealed=sealed), options)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def an_index(
    readers: Readers, folder: Path | None = None, *, watches: bool = False, sealed: bool = False
) -> Iterator[Trees]:
    """An index for the block; in the folder, or in one that is gone afterwards."""
    with ExitStack() as stack:
        folder = folder or stack.enter_context(a_folder())
        store = stack.enter_context(a_code_store(folder, sealed=sealed))
        yield stack.enter_context(an_index_of(readers, store, watches=watches))


@contextmanager
def an_index_of(readers: Readers, store: Store, *, watches: bool = False) -> Iterator[Trees]:
    """An index in that store, for the block."""
    trees = Trees(store, readers, SystemClock(), watches=watches)
    try:
        yield trees
    finally:
        trees.close()


def exported(trees: Trees, root: Path) -> bytes:
    """The index of the tree as it is on the disk, as it is exported."""
    live = trees.find(PROJECT, str(root))
    live.tree.look().result()
    return b"".join(export_lines(live.tree))


def symbols(trees: Trees, root: Path, name: str) -> Answered[Symbols]:
    """What the index says of that name."""
    live = trees.find(PROJECT, str(root))
    return answer(live, lambda graph: find_symbols(graph, name))


def parser_processes(parent: int | None = None) -> list[int]:
    """Parser processes of that process, else of this one."""
    wanted = str(parent or os.getpid())
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [
        int(pid) for pid, of, *args in rows if of == wanted and "code.reader_process" in str(args)
    ]


def current_symbols(trees: Trees, root: Path, name: str) -> Answered[Symbols]:
    """The same, as soon as it is the disk's: a machine that is busy takes its time."""

    def ask() -> Answered[Symbols] | None:
        found = symbols(trees, root, name)
        return found if found.state.freshness == code_pb2.FRESHNESS_CURRENT else None

    return until(ask, "the answer is current")
