"""Which files a tree has, and what the disk says of each: as git sees it, or by a walk of our own.

Symbolic links are not followed, neither to files nor to folders. A repository inside the tree is
part of it only where it is a submodule: another one, such as a further worktree, is a tree by
itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from muniment.code import git
from muniment.code.limits import TREE_LIMIT_FILES
from muniment.code.paths import exists, folder_of, is_folder, shown, under

__all__ = [
    "DiskState",
    "Listing",
    "changed_folders",
    "decides_names",
    "disk_state",
    "folder_test",
    "folder_times",
    "list_files",
    "list_folders",
    "names_in",
]

_DEEPEST_FOLDER = 64
_IGNORE_FILE = b".gitignore"
_JUNK = frozenset({b"node_modules", b"bower_components", b"__pycache__"})
_MARKED_JUNK = frozenset({b"pyvenv.cfg", b"CACHEDIR.TAG"})
"""Files that say that their folder is made by a program."""


class DiskState(NamedTuple):
    """What tells whether a file is the one that was read."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True)
class Listing:
    """The files of a tree at one moment."""

    files: dict[str, DiskState]
    """By path relative to the root, as it is shown."""
    raw_names: dict[str, bytes] = field(default_factory=dict)
    """What the disk calls them, where that is not the path itself."""
    by_git: bool = False
    note: str = ""
    """What is missing, or why git was not asked, for people."""
    deciding: dict[bytes, DiskState | None] = field(default_factory=dict)
    """Files elsewhere that decide which files the tree has, and how they were."""

    def raw(self, path: str) -> bytes:
        """The path as the disk has it, relative to the root."""
        return self.raw_names.get(path) or os.fsencode(path)


def list_files(root: bytes) -> Listing:
    """The files of the tree.

    Raises:
        OSError: The root cannot be read.
    """
    os.scandir(root).close()
    note = ""
    try:
        decisive = {path: disk_state(path) for path in git.git_watched_files(root)}
        names: Iterable[bytes] = list(_as_git_sees(root))
        by_git = True
    except git.GitError as error:
        decisive, by_git = {}, False
        names = _own_walk(root)
        if exists(under(root, b".git")):
            note = f"git was not asked for the files: {error}"
    files: dict[str, DiskState] = {}
    raw_names: dict[str, bytes] = {}
    is_real = folder_test(root)
    for name in names:
        found = disk_state(under(root, name)) if is_real(folder_of(name)) else None
        if found is None:
            continue
        if len(files) == TREE_LIMIT_FILES:
            note = f"only the first {TREE_LIMIT_FILES} files are indexed"
            break
        path = shown(name)
        if path in files:
            # Somebody named a file as another one is shown.
            continue
        files[path] = found
        if os.fsencode(path) != name:
            raw_names[path] = name
    return Listing(files, raw_names, by_git, note, decisive)


def disk_state(path: bytes) -> DiskState | None:
    """What the disk says of a regular file; None where there is none."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return DiskState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def decides_names(name: bytes) -> bool:
    """Whether the file of that name decides which other files belong to a tree."""
    return name.rpartition(b"/")[2] == _IGNORE_FILE


def folder_times(root: bytes, listing: Listing) -> dict[bytes, int]:
    """By folder that has files of the tree, relative to the root: when a name in it changed."""
    folders = {listing.raw(path).rpartition(b"/")[0] for path in listing.files} | {b""}
    return {folder: _folder_time(root, folder) for folder in folders}


def changed_folders(root: bytes, times: Mapping[bytes, int]) -> list[tuple[bytes, int]]:
    """The folders in which a name changed since, and when."""
    found = ((folder, time, _folder_time(root, folder)) for folder, time in times.items())
    return [(folder, now) for folder, time, now in found if now != time]


def names_in(root: bytes, folder: bytes) -> list[bytes]:
    """What there is in the folder; paths relative to the root."""
    try:
        with os.scandir(under(root, folder)) as found:
            return [under(folder, entry.name) for entry in found]
    except OSError:
        return []


def _folder_time(root: bytes, folder: bytes) -> int:
    try:
        return os.lstat(under(root, folder)).st_mtime_ns
    except OSError:
        return 0


def list_folders(root: bytes, listing: Listing) -> list[bytes]:
    """Folders in which files of the tree are, or could come to be; absolute paths.

    Raises:
        OSError: The root cannot be read.
    """
    ignored: frozenset[bytes] = frozenset()
    if listing.by_git:
        try:
            ignored = git.git_ignored_folders(root)
        except git.GitError:
            return []
    needed = set[bytes]()
    for path in listing.files:
        folder = folder_of(listing.raw(path))
        while folder and folder not in needed:
            needed.add(folder)
            folder = folder_of(folder)
    inside = _folders_under(root, b"", ignored, needed, hidden=listing.by_git)
    return [root, *(under(root, folder) for folder in inside)]


def _as_git_sees(root: bytes) -> Iterator[bytes]:
    yield from _of_repository(root, b"", git.git_files(root), 0)


def _of_repository(root: bytes, inside: bytes, names: list[bytes], depth: int) -> Iterator[bytes]:
    """The files of the repository at `inside` and of its submodules."""
    for name in names:
        if name.endswith(b"/"):
            continue
        path = under(inside, name)
        full = under(root, path)
        if not is_folder(full):
            yield path
        elif depth < _DEEPEST_FOLDER and exists(under(full, b".git")):
            try:
                of_module = git.git_files(full, ceiling=folder_of(full))
            except git.GitError:
                continue
            yield from _of_repository(root, path, of_module, depth + 1)


def folder_test(root: bytes) -> Callable[[bytes], bool]:
    """Tells whether no part of a path inside the root is a link."""
    known = {b"": True}

    def is_real(folder: bytes) -> bool:
        if folder not in known:
            parts = folder.split(b"/")
            known[folder] = (
                b".." not in parts
                and not folder.startswith(b"/")
                and is_real(folder_of(folder))
                and is_folder(under(root, folder))
            )
        return known[folder]

    return is_real


def _own_walk(root: bytes) -> Iterator[bytes]:
    """Files that neither an ignore file nor custom leaves out, by name."""
    yield from _walk(root, b"", ())


_Spec = tuple[bytes, GitIgnoreSpec]


def _walk(root: bytes, folder: bytes, specs: tuple[_Spec, ...]) -> Iterator[bytes]:
    if folder.count(b"/") >= _DEEPEST_FOLDER:
        return
    try:
        with os.scandir(under(root, folder)) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    names = {entry.name for entry in entries}
    if folder and (names & _MARKED_JUNK or b".git" in names):
        return
    if _IGNORE_FILE in names:
        spec = _ignore_spec(under(under(root, folder), _IGNORE_FILE))
        specs = (*specs, (folder, spec)) if spec is not None else specs
    for entry in entries:
        if entry.name.startswith(b".") or entry.is_symlink():
            continue
        path = under(folder, entry.name)
        is_folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(path, specs, is_folder=is_folder):
            continue
        if not is_folder:
            yield path
        elif entry.name not in _JUNK:
            yield from _walk(root, path, specs)


def _ignore_spec(path: bytes) -> GitIgnoreSpec | None:
    if disk_state(path) is None:
        return None
    try:
        text = Path(os.fsdecode(path)).read_text(encoding="utf-8", errors="surrogateescape")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except (OSError, ValueError):
        return None


def _is_ignored(path: bytes, specs: tuple[_Spec, ...], *, is_folder: bool) -> bool:
    """Whether the nearest ignore file that says anything of the path leaves it out."""
    for folder, spec in reversed(specs):
        inside = os.fsdecode(path[len(folder) + 1 :] if folder else path)
        said = spec.check_file(inside + "/" if is_folder else inside).include
        if said is not None:
            return said
    return False


def _folders_under(
    root: bytes, folder: bytes, ignored: frozenset[bytes], needed: set[bytes], *, hidden: bool
) -> Iterator[bytes]:
    try:
        with os.scandir(under(root, folder)) as found:
            entries = [one for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in entries:
        path = under(folder, entry.name)
        if entry.name == b".git" or path in ignored or path.count(b"/") >= _DEEPEST_FOLDER:
            continue
        if not hidden and (entry.name.startswith(b".") or entry.name in _JUNK):
            continue
        is_apart = exists(under(under(root, path), b".git")) and path not in needed
        if not is_apart:
            yield path
            yield from _folders_under(root, path, ignored, needed, hidden=hidden)
