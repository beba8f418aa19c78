"""The stores of a home: where each is, and which versions of its tables this program reads.

What the command line must know of them while no service runs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.errors import PreconditionError, UnavailableError
from muniment.kit.files import hold_file, private_folder
from muniment.kit.index.lexical import delete_index
from muniment.kit.paths import Home

__all__ = [
    "CODE_STORE",
    "CURRENT_FILE",
    "DENSE_FOLDER",
    "FIRST_GENERATION",
    "LEXICAL_FILE",
    "MEMORY_STORE",
    "RECORDS",
    "SLOTS_STORE",
    "STORES",
    "HomeStore",
    "StoreVersions",
    "current_generation",
    "delete_indexes",
    "generation_folder",
    "generation_folders",
    "generations",
    "hold_stores",
    "present_generation",
    "records_folder",
    "store_folders",
]

_HELD = "held"

_GENERATION = re.compile(r"generation-(\d{6,9})", re.ASCII)


CURRENT_FILE = "current"
"""In a tenant's folder: the number of the generation in force."""

FIRST_GENERATION = 1

LEXICAL_FILE = "lexical.sqlite3"
"""Beside a store: its lexical index."""

DENSE_FOLDER = "dense"
"""Beside a store: its dense index."""


@dataclass(frozen=True)
class StoreVersions:
    """What can be read of stores of one kind."""

    service: str
    """The service that owns it, or what its backups are called by."""
    version: int
    """The version of its tables."""
    oldest_version: int
    """The oldest that the service brings up to it."""

    def reads(self, version: int) -> bool:
        """Whether this program can use tables of that version."""
        return self.oldest_version <= version <= self.version


@dataclass(frozen=True)
class HomeStore(StoreVersions):
    """One store of every home."""

    def folder(self, home: Home) -> Path:
        """The store's folder."""
        return home.data(self.service) / "store"

    def index(self, home: Home) -> Path:
        """The file of the store's lexical index."""
        return home.data(self.service) / LEXICAL_FILE


MEMORY_STORE = HomeStore("memory", version=3, oldest_version=1)

SLOTS_STORE = HomeStore("slots", version=1, oldest_version=1)
"""What is known of inference servers, and of the snapshots of their slots."""

CODE_STORE = HomeStore("code", version=1, oldest_version=1)
"""What parsers said of projects' files. It could be made anew from these at any time."""

STORES: Sequence[HomeStore] = (MEMORY_STORE, SLOTS_STORE, CODE_STORE)

RECORDS = StoreVersions("records", version=1, oldest_version=1)
"""A tenant's records; the memory service owns them all."""


def records_folder(home: Home) -> Path:
    """The folder of the tenants' records."""
    return home.data(MEMORY_STORE.service) / RECORDS.service


def generation_folders(home: Home) -> list[Path]:
    """The folders of all generations of all tenants' records."""
    return sorted(records_folder(home).glob("*/generation-*"))


def present_generation(home: Home, tenant_folder: str) -> Path:
    """The folder of the generation that the tenant has in force.

    Where nothing tells, it is the newest that is there, or the first.
    """
    folder = records_folder(home) / tenant_folder
    try:
        number = current_generation(folder)
    except PreconditionError:
        number = None
    if number is None:
        number = max(generations(folder), default=FIRST_GENERATION)
    return generation_folder(folder, number)


def generation_folder(folder: Path, number: int) -> Path:
    """The folder of a generation of the tenant whose folder that is."""
    return folder / f"generation-{number:06d}"


def generations(folder: Path) -> dict[int, Path]:
    """By number the folders of generations that the tenant has, finished or not."""
    named = ((_GENERATION.fullmatch(path.name), path) for path in folder.glob("generation-*"))
    return {int(found[1]): path for found, path in named if found is not None}


def current_generation(folder: Path) -> int | None:
    """The number of the generation in force; None where the tenant never came to have one.

    Raises:
        PreconditionError: The file that says so cannot be read.
    """
    path = folder / CURRENT_FILE
    try:
        text = path.read_bytes().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        text = b""
    for number in generations(folder):
        if text == str(number).encode():
            return number
    raise PreconditionError(
        f"{path} does not name a generation that is there",
        reason="STORE_UNREADABLE",
        fix="`muniment restore` brings back a backup",
    )


def store_folders(home: Home) -> list[Path]:
    """The folders of all stores, whether they are there or not."""
    own = [store.folder(home) for store in STORES]
    return own + [folder / "store" for folder in generation_folders(home)]


def delete_indexes(home: Home) -> None:
    """Delete what is derived from the stores: it is made anew when it is needed."""
    for store in STORES:
        delete_index(store.index(home))
    for folder in generation_folders(home):
        delete_index(folder / LEXICAL_FILE)
        shutil.rmtree(folder / DENSE_FOLDER, ignore_errors=True)


@contextmanager
def hold_stores(home: Home, stores: Sequence[HomeStore]) -> Iterator[None]:
    """Have these stores to oneself: their services cannot start meanwhile.

    Raises:
        UnavailableError: Somebody uses one of them.
    """
    with ExitStack() as held:
        for store in stores:
            folder = private_folder(home.data(store.service))
            try:
                held.enter_context(hold_file(folder / _HELD))
            except BlockingIOError as error:
                raise UnavailableError(
                    f"another process uses {folder}",
                    reason="STORE_IN_USE",
                    fix="stop it with `muniment down`, then call again",
                ) from error
        yield
