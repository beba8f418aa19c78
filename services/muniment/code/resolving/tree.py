"""All files of a tree: by path, by what imports call them, by package; symbols by name."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from typing import TypeVar

from muniment.code.resolving.files import EXTENDS, FUNCTIONS, METHOD, TYPES, File
from muniment.code.resolving.rules import Rules
from muniment.v1.store_pb2 import CodeFacts

__all__ = ["Tree", "last_part", "package_of", "shared_by"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value", bound=Hashable)

_SEPARATORS = str.maketrans({".": "/", ":": "/"})


def last_part(name: str) -> str:
    """What stands behind a name's last separator."""
    return name.translate(_SEPARATORS).rpartition("/")[2]


class Tree:
    """The files, and where to find what.

    Files and symbols have *numbers* that stay theirs while the rest of a file changes. Who looks
    for something that may be missing notes a *want*, a text that names what was looked for.
    """

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.places: dict[tuple[str, str], set[File]] = {}
        """By family and location."""
        self.ends: dict[tuple[str, str], set[str]] = {}
        """Locations by family and their last part, those of folders with files below included."""
        self.folders: dict[tuple[str, str], int] = {}
        """How many files are in and below a folder, by family and folder."""
        self.packages: dict[tuple[str, str], set[File]] = {}
        self.extending: dict[tuple[str, str], set[File]] = {}
        """Files that add to types of a name, by family and name."""
        self.named: dict[str, set[int]] = {}
        """Numbers of symbols by name, and by the last part of their name."""
        self.file_of: list[File | None] = []
        self.index_of = array("i")
        self._free: list[int] = []
        self._wanting: dict[str, set[File]] = {}
        self.texts: list[str] = []
        """Names of methods by their number, which rows may hold in place of a symbol's."""
        self._text_numbers: dict[str, int] = {}

    def put(self, path: str, language: str, facts: CodeFacts) -> set[File]:
        """Add a file or exchange its facts. Who has to be resolved anew, itself included."""
        old = self.files.get(path)
        if old and (old.language != language or old.facts.package != facts.package):
            return self.drop(path) | self.put(path, language, facts)
        if old is None:
            return self._add(File(path, language, facts))
        before = old.meanings()
        self._extend(old, added=False)
        self._number(old, facts)
        self._extend(old, added=True)
        after = old.meanings()
        changed = {
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        }
        dirty = {old}
        if changed:
            dirty.update(
                one for one in old.readers if not changed.isdisjoint(one.reads.get(old, ()))
            )
            dirty |= self._wanting_names(old, changed)
        return dirty

    def drop(self, path: str) -> set[File]:
        """Remove a file. Who has to be resolved anew."""
        file = self.files.pop(path)
        dirty = file.readers | self._wanting_names(file, _offered(file))
        self._extend(file, added=False)
        dirty |= self._placed(file, added=False)
        self.forget_reads(file)
        for number in file.ids:
            self._free_number(file, number)
        dirty.discard(file)
        return dirty

    def note_reads(self, file: File, trace: set[tuple[File, str] | str]) -> None:
        """Remember what was read of others, and looked for, when the file was resolved."""
        reads: dict[File, list[str]] = {}
        wants = []
        for read in trace:
            if isinstance(read, str):
                wants.append(read)
            elif read[0] is not file:
                reads.setdefault(read[0], []).append(read[1])
        self.forget_reads(file)
        file.reads = {other: tuple(names) for other, names in reads.items()}
        for other in file.reads:
            other.readers.add(file)
        file.wants = tuple(wants)
        for want in wants:
            self._wanting.setdefault(want, set()).add(file)

    def forget_reads(self, file: File) -> None:
        """Undo `note_reads`."""
        for other in file.reads:
            other.readers.discard(file)
        for want in file.wants:
            wanting = self._wanting[want]
            wanting.discard(file)
            if not wanting:
                del self._wanting[want]
        file.reads, file.wants = {}, ()

    def text_number(self, text: str) -> int:
        """A number for a name."""
        number = self._text_numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def methods(self, name: str, family: str) -> list[int]:
        """Numbers of the methods of that name in the family's files."""
        found = []
        for number in self.named.get(name, ()):
            file, index = self.file_of[number], self.index_of[number]
            if file is None or file.rules.family != family or file.kinds[index] not in FUNCTIONS:
                continue
            scope = file.scopes[index]
            in_type = scope and file.kinds[scope - 1] in TYPES
            is_method = in_type or file.kinds[index] == METHOD
            if is_method and file.symbol(index).name == name:
                found.append(number)
        return found

    def _add(self, file: File) -> set[File]:
        self.files[file.path] = file
        self._number(file, file.facts)
        self._extend(file, added=True)
        return {file} | self._placed(file, added=True) | self._wanting_names(file, _offered(file))

    def _extend(self, file: File, *, added: bool) -> None:
        for name in set(file.extensions.values()):
            _keep(self.extending, (file.rules.family, name), file, added)

    def _placed(self, file: File, *, added: bool) -> set[File]:
        """Enter or remove the file where imports find it. Who looked there."""
        family, location = file.rules.family, file.location
        _keep(self.places, (family, location), file, added)
        dirty = set(self._wanting.get(f"at {family} {location}", ()))
        if package := package_of(file):
            _keep(self.packages, (family, package), file, added)
            dirty |= self._wanting.get(f"package {family} {package}", set())
        if added or (family, location) not in self.places:
            dirty |= self._ends(family, location, added=added)
        folder = file.path
        while folder:
            folder = folder.rpartition("/")[0]
            key = (family, folder)
            count = self.folders.get(key, 0) + (1 if added else -1)
            if count:
                self.folders[key] = count
            else:
                del self.folders[key]
            if count == (1 if added else 0):
                dirty |= self._wanting.get(f"at {family} {folder}", set())
                dirty |= self._ends(family, folder, added=added)
        return dirty

    def _ends(self, family: str, location: str, *, added: bool) -> set[File]:
        if not added and ((family, location) in self.places or (family, location) in self.folders):
            return set()
        last = location.rpartition("/")[2]
        _keep(self.ends, (family, last), location, added)
        return self._wanting.get(f"end {family} {last}", set())

    def _wanting_names(self, file: File, names: set[str]) -> set[File]:
        """Who looked for one of the names in what the file shares its names with."""
        family = file.rules.family
        dirty: set[File] = set()
        for name in names:
            if name.startswith(EXTENDS):
                dirty |= self._wanting.get(f"{family} {name}", set())
        if not file.rules.shares:
            return dirty
        group = shared_by(file.rules, package_of(file))
        for name in names:
            dirty |= self._wanting.get(f"name {group} {name}", set())
        return dirty

    def _number(self, file: File, facts: CodeFacts) -> None:
        """Take the facts and give numbers: a symbol of the same name in the same one keeps its."""
        kept: dict[tuple[int, str, int], list[int]] = {}
        for index in reversed(range(file.first_import if file.ids else 0)):
            one = file.facts.symbols[index]
            key = (file.ids[file.scopes[index]], one.name, one.kind)
            kept.setdefault(key, []).append(file.ids[index + 1])
        own = file.ids[0] if file.ids else self._new_number(file, -1, "")
        file.take(facts)
        file.ids = ids = array("i", [own])
        for index, one in enumerate(facts.symbols):
            if former := kept.get((ids[file.scopes[index]], one.name, one.kind)):
                number = former.pop()
                self.index_of[number] = index
            else:
                number = self._new_number(file, index, one.name)
            ids.append(number)
        for (_, name, _), left in kept.items():
            for number in left:
                self._free_number(file, number, name)

    def _new_number(self, file: File, index: int, name: str) -> int:
        if self._free:
            number = self._free.pop()
            self.file_of[number], self.index_of[number] = file, index
        else:
            number = len(self.file_of)
            self.file_of.append(file)
            self.index_of.append(index)
        for one in _keys(name):
            self.named.setdefault(one, set()).add(number)
        return number

    def _free_number(self, file: File, number: int, name: str | None = None) -> None:
        index = self.index_of[number]
        if name is None:
            name = file.symbol(index).name if index >= 0 else ""
        for one in _keys(name):
            _keep(self.named, one, number, False)
        self.file_of[number] = None
        self._free.append(number)


def _offered(file: File) -> set[str]:
    """All that others may find in the file without an import."""
    return {*file.names(), *(f"{EXTENDS}{name}" for name in file.extensions.values())}


def package_of(file: File) -> str:
    """What the file's package is called: its folder where folders are packages."""
    folders = file.rules.shares == "folder"
    return file.path.rpartition("/")[0] if folders else file.facts.package


def shared_by(rules: Rules, package: str) -> str:
    """Who knows a top-level name without an import, as wants name it."""
    return rules.family if rules.shares == "family" else f"{rules.family} {package}"


def _keys(name: str) -> Iterator[str]:
    if name:
        yield name
        if (last := last_part(name)) != name and last:
            yield last


def _keep(kept: dict[_Key, set[_Value]], key: _Key, value: _Value, added: bool) -> None:
    if added:
        kept.setdefault(key, set()).add(value)
    elif values := kept.get(key):
        values.discard(value)
        if not values:
            del kept[key]
