"""What a name means in a scope: through scopes, imports, stars, re-exports, packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from muniment.code.limits import CHAIN_PARTS_LIMIT, MEANINGS_LIMIT
from muniment.code.resolving.files import EXTENDS, FILE, MODULE, OTHER, STAR, TYPE, TYPES, File
from muniment.code.resolving.modules import (
    Group,
    Target,
    Trace,
    file_at,
    files_of,
    import_target,
    module_at,
)
from muniment.code.resolving.tree import Tree, package_of, shared_by
from muniment.v1.store_pb2 import CodeImport

__all__ = ["Names", "Thing"]

Thing = tuple[File | Group, int]
"""What a name stands for: an entry of a file, or the file or group itself (entry FILE)."""

_HOPS_LIMIT = 64
_ALIASES_LIMIT = 6
_BASES_LIMIT = 128
_Found = TypeVar("_Found")

# Stands for what was not asked yet; None is an answer.
_UNASKED: Any = object()


class Names:
    """Lookups over a tree that does not change meanwhile; each is made once.

    `trace` collects what is read. Nothing depends on the order of questions: a lookup starts
    afresh, goes on without recursion or to a fixed depth, and what it comes to is kept with all
    that it read.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.trace: Trace = set()
        self._known: dict[object, tuple[Any, Trace]] = {}
        self._current: File | None = None
        self._own: dict[object, Any] = {}

    def begin(self, file: File) -> None:
        """Look up for this file from now on."""
        self.trace = set()
        self._current = file
        self._own = {}

    def once(self, file: File, key: object, find: Callable[[], _Found]) -> _Found:
        """What `find` finds in the file, from the last time where it was asked before."""
        if file is self._current:
            # All that it reads is read for this file, and nobody else asks for it.
            found: _Found = self._own.get(key, _UNASKED)
            if found is _UNASKED:
                found = self._own[key] = find()
            return found
        if (known := self._known.get(key)) is None:
            outer = self.trace, self._current
            self.trace, self._current = set(), None
            try:
                known = self._known[key] = (find(), self.trace)
            finally:
                self.trace, self._current = outer
        self.trace |= known[1]
        answer: _Found = known[0]
        return answer

    def home(self, file: File, scope: int, name: str) -> int:
        """The innermost scope around that has the name, or 0: there it means the same."""
        scopes, at = file.scopes, scope
        if file.rules.sees_members:
            return scope
        entries = file.entries(name)
        # Entries are in the order of their kinds, not of their scopes.
        if not entries or (len(entries) == 1 and not scopes[entries[0]]):
            return 0
        having = [scopes[entry] for entry in entries]
        while at and not (at in having and (at == scope or file.kinds[at - 1] not in TYPES)):
            at = scopes[at - 1]
        return at

    def lookup(
        self, file: File, scope: int, name: str, *, inherited: bool = True
    ) -> tuple[Thing, ...] | None:
        """What the bare name means there: () what is none of the tree, None where nobody knows."""
        home = self.home(file, scope, name)
        return self.once(
            file,
            (file, home, name, inherited),
            lambda: self._lookup(file, home, name, inherited),
        )

    def exported(self, file: File, name: str) -> tuple[Thing, ...]:
        """What the file's top-level name means to others: re-exports followed to their ends."""
        return self.once(
            file, (file, name), lambda: self._follow([(file, (name,))], submodules=True)
        )

    def imported(self, file: File, entry: int) -> tuple[Thing, ...]:
        """What an import brings: the definition, or the module."""
        one = file.facts.imports[entry - file.first_import]
        if not one.is_star:
            return self._meant(file, (entry,))
        target = self._target(file, one.module)
        return ((target.module, FILE),) if target and not target.rest else ()

    def within(self, thing: Thing, name: str) -> tuple[Thing, ...]:
        """What the name means right in a file, group, module or type; bases not asked."""
        where, entry = thing
        if isinstance(where, Group):
            return self._in_group(where, name)
        if entry == FILE:
            return self.exported(where, name)
        if not where.is_symbol(entry):
            return ()
        self.trace.add((where, name))
        hits = where.defined_in(name, entry + 1)
        if hits:
            return self._meant(where, hits)
        if where.rules.family == "rust" and where.kinds[entry] == MODULE:
            inner = self._module_file(where, entry)
            return self.exported(inner, name) if inner else ()
        return ()

    def plain(
        self, file: File, scope: int, chain: str, hops: int = _ALIASES_LIMIT
    ) -> tuple[Thing, ...] | None:
        """What names with dots mean, calls and values not asked: types, as they are declared."""
        key = ("plain", file, scope, chain, hops)
        return self.once(file, key, lambda: self._plain(file, scope, chain, hops))

    def lineage(self, file: File, entry: int) -> tuple[tuple[tuple[File, int], ...], bool]:
        """The type and its bases, nearest first; and whether all of its bases are known."""
        return self.once(file, ("lineage", file, entry), lambda: self._lineage(file, entry))

    def member(self, file: File, entry: int, name: str, skip: int = 0) -> tuple[Thing, ...] | None:
        """The type's member, its own or its nearest base's.

        () where a base that is none of the tree may have it, None where nobody has it.
        """
        key = ("member", file, entry, name, skip)
        return self.once(file, key, lambda: self._member(file, entry, name, skip))

    def _member(self, file: File, entry: int, name: str, skip: int) -> tuple[Thing, ...] | None:
        bases, is_closed = self.lineage(file, entry)
        for of, index in bases[skip:]:
            self.trace.add((of, name))
            if hits := of.defined_in(name, index + 1):
                return self._meant(of, hits)
            if added := self._added(of, index, name):
                return added
        return None if is_closed else ()

    def owners(self, file: File, scope: int) -> list[tuple[File, int]]:
        """The type whose member the scope is, or is part of."""
        around = file.owner_around(scope)
        if around is None:
            return []
        if around not in file.extensions:
            return [(file, around)]
        chain = file.symbol(around).receiver
        return self._types(file, file.scopes[around], chain)

    def extensions(self, file: File, entry: int) -> tuple[tuple[File, int], ...]:
        """What is added to the type elsewhere: methods, and blocks of members."""
        key = ("extensions", file, entry)
        return self.once(file, key, lambda: self._extensions(file, entry))

    def _extensions(self, file: File, entry: int) -> tuple[tuple[File, int], ...]:
        name, family = file.symbol(entry).name, file.rules.family
        self.trace |= {(file, name), f"{family} {EXTENDS}{name}"}
        found = []
        for other in sorted(self.tree.extending.get((family, name), ()), key=lambda one: one.path):
            for index, last in other.extensions.items():
                if last == name:
                    chain = other.symbol(index).receiver
                    if (file, entry) in self._types(other, other.scopes[index], chain):
                        found.append((other, index))
        return tuple(found)

    def _added(self, file: File, entry: int, name: str) -> tuple[Thing, ...]:
        found: list[Thing] = []
        for other, index in self.extensions(file, entry):
            if other.kinds[index] != OTHER:
                if other.symbol(index).name == name:
                    found.append((other, index))
                continue
            self.trace.add((other, name))
            found += self._meant(other, other.defined_in(name, index + 1))
        return tuple(found)

    def _types(self, file: File, scope: int, chain: str) -> list[tuple[File, int]]:
        """The types that a chain names."""
        return [
            (where, index)
            for where, index in self.plain(file, scope, chain) or ()
            if isinstance(where, File) and where.is_type(index)
        ]

    def _lookup(
        self, file: File, scope: int, name: str, inherited: bool
    ) -> tuple[Thing, ...] | None:
        self.trace.add((file, name))
        at = scope
        while True:
            if hits := file.defined_in(name, at):
                return self._meant(file, hits)
            if not at:
                break
            has_bases = inherited and file.rules.sees_members and file.is_type(at - 1)
            if has_bases and (found := self.member(file, at - 1, name, 1)):
                return found
            at = file.scopes[at - 1] if file.rules.sees_members else 0
        if found := self._follow([(file, (name,))], submodules=False):
            return found
        return self._shared(file, name)

    def _shared(self, file: File, name: str) -> tuple[Thing, ...] | None:
        """What is known without an import: of the folder, package or language."""
        rules = file.rules
        found: tuple[Thing, ...] = ()
        package = package_of(file)
        if package and rules.shares:
            found = self._in_group(Group(rules.family, "package", package), name)
        if not found and rules.shares == "family":
            self.trace.add(f"name {rules.family} {name}")
            found = self._anywhere(rules.family, name)
        if found:
            return found
        return () if name in rules.foreign else None

    def _anywhere(self, family: str, name: str) -> tuple[Thing, ...]:
        """Definitions of that name in the family's files that stand in modules only."""
        found: list[tuple[File, int]] = []
        for number in self.tree.named.get(name, ()):
            file, index = self.tree.file_of[number], self.tree.index_of[number]
            if file is None or file.rules.family != family or file.symbol(index).name != name:
                continue
            scope = file.scopes[index]
            while scope and file.kinds[scope - 1] == MODULE:
                scope = file.scopes[scope - 1]
            if not scope:
                found.append((file, index))
        if len(found) > MEANINGS_LIMIT:
            return ()
        return tuple(sorted(found, key=lambda one: (one[0].path, one[1])))

    def _in_group(self, group: Group, name: str) -> tuple[Thing, ...]:
        if group.family == "python":
            inner = module_at(self.tree, "python", f"{group.name}/{name}", self.trace)
            return ((inner, FILE),) if inner else ()
        files = files_of(self.tree, group)
        if files:
            self.trace.add(f"name {shared_by(files[0].rules, group.name)} {name}")
        found: list[Thing] = []
        for file in files:
            found += [(file, one) for one in file.defined_in(name, 0) if not file.imported(one)]
        return tuple(found[:MEANINGS_LIMIT])

    def _meant(self, file: File, hits: Iterable[int]) -> tuple[Thing, ...]:
        """Entries, with imports followed."""
        todo: list[tuple[File | Group, tuple[str, ...]]] = []
        found: dict[Thing, None] = {}
        for entry in hits:
            if (one := file.imported(entry)) is None:
                found[file, entry] = None
            else:
                self._step(file, one, todo, found)
        if todo:
            found.update(dict.fromkeys(self._follow(todo, submodules=True)))
        return tuple(found)

    def _follow(
        self, todo: list[tuple[File | Group, tuple[str, ...]]], *, submodules: bool
    ) -> tuple[Thing, ...]:
        """Go where imports and stars lead, each place once."""
        found: dict[Thing, None] = {}
        seen: set[tuple[File | Group, tuple[str, ...]]] = set()
        for step in todo:
            if step in seen or len(seen) > _HOPS_LIMIT:
                continue
            seen.add(step)
            where, (name, *rest) = step
            things: list[Thing] = []
            if isinstance(where, Group):
                things += self._in_group(where, name)
            else:
                things += self._here(where, name, tuple(rest), todo, submodules=submodules)
            for thing in things:
                inner: tuple[Thing, ...] = (thing,)
                for one in rest:
                    inner = tuple(deep for each in inner for deep in self._inside(each, one))
                found.update(dict.fromkeys(inner))
        return tuple(found)

    def _here(
        self,
        file: File,
        name: str,
        rest: tuple[str, ...],
        todo: list[tuple[File | Group, tuple[str, ...]]],
        *,
        submodules: bool,
    ) -> list[Thing]:
        """The file's own top-level entries of the name; where it leads on goes to `todo`."""
        self.trace.add((file, name))
        things: dict[Thing, None] = {}
        hits = file.defined_in(name, 0)
        for entry in hits:
            if (one := file.imported(entry)) is None:
                things[file, entry] = None
            else:
                self._step(file, one, todo, things, rest)
        if hits:
            return list(things)
        self.trace.add((file, STAR))
        for entry in file.entries(STAR):
            one = file.imported(entry)
            if one and not (file.rules.family == "python" and name.startswith("_")):
                target = self._target(file, one.module)
                if target and target.module is not file:
                    todo.append((target.module, (*target.rest, name, *rest)))
        if submodules and file.rules.index_names and file.rules.family != "script":
            location = f"{file.location}/{name}".lstrip("/")
            if inner := file_at(self.tree, file.rules.family, location, self.trace):
                things[inner, FILE] = None
        return list(things)

    def _step(
        self,
        file: File,
        one: CodeImport,
        todo: list[tuple[File | Group, tuple[str, ...]]],
        things: dict[Thing, None],
        rest: tuple[str, ...] = (),
    ) -> None:
        """One import: either it is a module itself, or a name to look up in one."""
        # `export default name` takes from the file itself.
        target = self._target(file, one.module) if one.module else Target(file)
        if target is None:
            return
        if file.rules.family == "rust" and target == Target(file) and one.name:
            # `mod net;` declares a module that is a file.
            location = f"{file.location}/{one.name}".lstrip("/")
            if inner := file_at(self.tree, "rust", location, self.trace):
                if rest:
                    todo.append((inner, rest))
                else:
                    things[inner, FILE] = None
                return
        names = (*target.rest, one.name) if one.name else target.rest
        if names:
            todo.append((target.module, (*names, *rest)))
        else:
            things[target.module, FILE] = None

    def _target(self, file: File, module: str) -> Target | None:
        """The module as any file of the same folder means it."""
        key = ("target", file.path if file.rules.family == "rust" else file.folder, module)
        if (known := self._known.get((file.rules.family, key))) is None:
            trace: Trace = set()
            known = (import_target(self.tree, file, module, trace), trace)
            self._known[file.rules.family, key] = known
        self.trace |= known[1]
        target: Target | None = known[0]
        return target

    def _inside(self, thing: Thing, name: str) -> tuple[Thing, ...]:
        """As `within`, but not through further imports: it is asked on the way along them."""
        where, entry = thing
        if isinstance(where, Group):
            return self._in_group(where, name)
        self.trace.add((where, name))
        hits = where.defined_in(name, entry + 1)
        if hits:
            return tuple((where, one) for one in hits if where.imported(one) is None)
        if entry == FILE and where.rules.index_names:
            inner = file_at(self.tree, where.rules.family, f"{where.location}/{name}", self.trace)
            return ((inner, FILE),) if inner else ()
        return ()

    def _plain(self, file: File, scope: int, chain: str, hops: int) -> tuple[Thing, ...] | None:
        parts = chain.split(".")
        if len(parts) > CHAIN_PARTS_LIMIT or hops < 0 or not all(map(str.isidentifier, parts)):
            return None
        things = self.lookup(file, scope, parts[0], inherited=False)
        for name in parts[1:]:
            if not things:
                return things
            behind = self._behind(things, hops)
            things = tuple(dict.fromkeys(one for each in behind for one in self.within(each, name)))
        return self._behind(things, hops) if things else things

    def _behind(self, things: tuple[Thing, ...], hops: int) -> tuple[Thing, ...]:
        """The things, with what aliases stand for in their place."""
        found: dict[Thing, None] = {}
        for where, entry in things[:MEANINGS_LIMIT]:
            chain = ""
            if isinstance(where, File) and entry >= where.first_binding:
                bound = where.binding(entry)
                chain = "" if bound.is_type else bound.value
            elif isinstance(where, File) and where.is_symbol(entry):
                symbol = where.symbol(entry)
                chain = symbol.type if symbol.kind == TYPE else ""
            behind = None
            if chain and isinstance(where, File):
                behind = self.plain(where, where.scopes[entry], chain, hops - 1)
            found.update(dict.fromkeys(behind or ((where, entry),)))
        return tuple(found)

    def _lineage(self, file: File, entry: int) -> tuple[tuple[tuple[File, int], ...], bool]:
        """A topological order of the graph of bases in which the first base comes first.

        It is Python's own order where that is one, and finite where bases run in a circle.
        """
        start = (file, entry)
        done: list[tuple[File, int]] = []
        seen = {start}
        is_closed = True
        bases, known = self._bases(*start)
        is_closed &= known
        stack = [(start, iter(bases))]
        while stack:
            of, left = stack[-1]
            base = next(left, None)
            if base is None:
                done.append(of)
                stack.pop()
            elif base not in seen:
                if len(seen) >= _BASES_LIMIT:
                    is_closed = False
                    continue
                seen.add(base)
                bases, known = self._bases(*base)
                is_closed &= known
                stack.append((base, iter(bases)))
        return tuple(reversed(done)), is_closed

    def _bases(self, file: File, entry: int) -> tuple[list[tuple[File, int]], bool]:
        """The bases in reverse order, and whether all are of the tree."""
        symbol = file.symbol(entry)
        self.trace.add((file, symbol.name))
        found: dict[tuple[File, int], None] = {}
        is_closed = True
        for chain in dict.fromkeys((*symbol.bases, *symbol.interfaces)):
            if chain == "object":
                continue
            types = self._types(file, file.scopes[entry], chain)
            is_closed &= bool(types)
            found.update(dict.fromkeys(types))
        for other, index in self.extensions(file, entry):
            for chain in other.symbol(index).bases:
                found.update(dict.fromkeys(self._types(other, other.scopes[index], chain)))
        return list(reversed(found)), is_closed

    def _module_file(self, file: File, entry: int) -> File | None:
        """The file of a module that is declared only: `mod net;`."""
        parts = [file.symbol(entry).name]
        scope = file.scopes[entry]
        while scope and len(parts) < CHAIN_PARTS_LIMIT:
            parts.append(file.symbol(scope - 1).name)
            scope = file.scopes[scope - 1]
        location = "/".join([file.location, *reversed(parts)]).lstrip("/")
        return file_at(self.tree, "rust", location, self.trace)
