"""What a chain of names comes to: receivers, results of calls, what variables hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from muniment.code.limits import CHAIN_PARTS_LIMIT, MEANINGS_LIMIT
from muniment.code.resolving.files import FILE, FUNCTIONS, MODULE, TYPE, TYPES, File
from muniment.code.resolving.modules import Group, import_target
from muniment.code.resolving.names import Names, Thing

__all__ = ["Values"]

_Any = TypeVar("_Any", bound=Hashable)

Value = tuple[File | Group, int, int]
"""A thing, and how it is meant."""

_ITSELF, _INSTANCE, _SUPER = range(3)

_DEPTH = 6
"""How many variables and results may lead to each other."""

_INSTANCES = frozenset({"self", "this"})
_OWN_TYPES = frozenset({"cls", "Self", "static"})
_PATHS = frozenset({"crate", "super", "self"})


class Values:
    """Evaluates chains (see CodeMentions) by declared types and by what made a variable's value.

    As in Names, () is what is none of the tree and None what nobody knows. The depth falls with
    each step from one chain to another, so every answer is a function of its question.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    def things(
        self, file: File, scope: int, chain: str, depth: int = _DEPTH
    ) -> tuple[Thing, ...] | None:
        """What the last name of the chain means."""
        head, dot, name = chain.rpartition(".")
        name = name.partition("(")[0]
        if dot:
            receivers = self._values(file, scope, head, depth)
            if not receivers:
                return None if receivers is None else ()
            return _gathered(self._members(one, name) for one in receivers)
        if name == "super":
            return ()
        if name in _INSTANCES or name in _OWN_TYPES:
            return tuple(self._names.owners(file, scope)) if name in _OWN_TYPES else None
        if name == "?":
            return None
        return self._names.lookup(file, scope, name) if name.isidentifier() else ()

    def types(self, thing: Thing) -> tuple[Thing, ...]:
        """The definitions that a variable stands for: of `make = Foo` it is `Foo`."""
        values = self._value(thing, _DEPTH) or ()
        return tuple((where, entry) for where, entry, view in values if view == _ITSELF)

    def _values(self, file: File, scope: int, chain: str, depth: int) -> tuple[Value, ...] | None:
        if depth < 0:
            return None
        home = self.home(file, scope, chain)
        key = ("values", file, home, chain, depth)
        return self._names.once(file, key, lambda: self._evaluated(file, home, chain, depth))

    def home(self, file: File, scope: int, chain: str) -> int:
        """A scope in which the chain means the same, and those in other scopes as well."""
        name = chain.partition(".")[0].partition("(")[0]
        if name in _INSTANCES or name in _OWN_TYPES or name == "super":
            around = file.owner_around(scope)
            return scope if around is None else around + 1
        return self._names.home(file, scope, name)

    def _evaluated(
        self, file: File, scope: int, chain: str, depth: int
    ) -> tuple[Value, ...] | None:
        head, dot, last = chain.rpartition(".")
        name, calls = last.partition("(")[0], last.count("()")
        values: tuple[Value, ...] | None = None
        receivers: tuple[Value, ...] = ()
        if not dot:
            values = self._special(file, scope, name)
            if values and name == "super":
                calls = 0
        elif calls:
            receivers = self._values(file, scope, head, depth) or ()
        if values is None:
            things = self.things(file, scope, chain, depth)
            if not things:
                return None if things is None else ()
            values = _gathered(self._value(thing, depth - 1, receivers) for thing in things)
        for _ in range(calls):
            if not values:
                break
            values = _gathered(self._called(one, receivers, depth - 1) for one in values)
        return values

    def _special(self, file: File, scope: int, name: str) -> tuple[Value, ...] | None:
        """What the language itself means by a first name."""
        if file.rules.family == "rust" and name in _PATHS and not (name == "self" and scope):
            target = import_target(self._names.tree, file, name, self._names.trace)
            return ((target.module, FILE, _ITSELF),) if target and not target.rest else ()
        views = {"super": _SUPER, **dict.fromkeys(_INSTANCES, _INSTANCE)}
        if name in views or name in _OWN_TYPES:
            view = views.get(name, _ITSELF)
            return tuple((*own, view) for own in self._names.owners(file, scope)) or None
        return None

    def _value(
        self, thing: Thing, depth: int, receivers: tuple[Value, ...] = ()
    ) -> tuple[Value, ...] | None:
        """What a thing is worth where it is used."""
        where, entry = thing
        if isinstance(where, Group) or entry == FILE:
            return ((where, entry, _ITSELF),)
        if not where.is_symbol(entry):
            return self._bound(where, entry, depth)
        symbol, scope = where.symbol(entry), where.scopes[entry]
        self._names.trace.add((where, symbol.name))
        if symbol.is_property:
            return self._called((where, entry, _ITSELF), receivers, depth)
        if symbol.kind in TYPES or symbol.kind in FUNCTIONS:
            return ((where, entry, _ITSELF),)
        if symbol.kind == MODULE:
            return ((where, entry, _ITSELF),)
        if symbol.kind == TYPE:
            behind = self._names.plain(where, scope, symbol.type) if symbol.type else None
            return tuple((*one, _ITSELF) for one in behind or (thing,))
        if symbol.type:
            return self._instances(where, scope, symbol.type, receivers)
        bindings = [
            one for one in where.entries_in(symbol.name, scope) if one >= where.first_binding
        ]
        return _gathered(self._bound(where, one, depth) for one in bindings) if bindings else None

    def _bound(self, file: File, entry: int, depth: int) -> tuple[Value, ...] | None:
        if entry < file.first_binding:
            return None
        binding, scope = file.binding(entry), file.scopes[entry]
        self._names.trace.add((file, binding.name))
        if binding.is_type:
            return self._instances(file, scope, binding.value, ())
        chain = binding.value
        if chain.count(".") >= CHAIN_PARTS_LIMIT:
            return None
        if file.is_type(scope - 1) and (inner := self._makers(file, scope, chain)):
            return _gathered(self._values(file, one, chain, depth - 1) for one in inner)
        return self._values(file, scope, chain, depth - 1)

    def _makers(self, file: File, scope: int, chain: str) -> list[int]:
        """Methods of the type that have the chain's first name: `self.x = x` is said in one."""
        name = chain.partition(".")[0].partition("(")[0]
        scopes = file.scopes
        having = {scopes[entry] for entry in file.entries(name)} - {0, scope}
        return sorted(one for one in having if scopes[one - 1] == scope)

    def _called(
        self, value: Value, receivers: tuple[Value, ...], depth: int
    ) -> tuple[Value, ...] | None:
        """What a call of the value gives."""
        where, entry, view = value
        if isinstance(where, Group) or not where.is_symbol(entry) or depth < 0:
            return ()
        kind = where.kinds[entry]
        if kind in FUNCTIONS:
            symbol = where.symbol(entry)
            self._names.trace.add((where, symbol.name))
            if not symbol.type:
                return None
            # The type's names are known where the function stands, and in it: `fn f<T>() -> T`.
            return self._instances(where, where.scopes[entry], symbol.type, receivers)
        if kind not in TYPES:
            return None
        if view == _ITSELF:
            return ((where, entry, _INSTANCE),)
        called = self._names.member(where, entry, "__call__")
        if not called:
            return None if called is None else ()
        return _gathered(self._called((*one, _ITSELF), (value,), depth - 1) for one in called)

    def _instances(
        self, file: File, scope: int, chain: str, receivers: tuple[Value, ...]
    ) -> tuple[Value, ...] | None:
        """Values of a declared type."""
        if chain in ("Self", "this", "static"):
            own = [one[:2] for one in receivers] or self._names.owners(file, scope)
            return tuple(
                (where, entry, _INSTANCE)
                for where, entry in own
                if isinstance(where, File) and where.is_type(entry)
            )
        types = self._names.plain(file, scope, chain)
        if not types:
            return None if types is None else ()
        found = tuple(
            (where, entry, _INSTANCE)
            for where, entry in types
            if isinstance(where, File) and where.is_type(entry)
        )
        return found or None

    def _members(self, value: Value, name: str) -> tuple[Thing, ...] | None:
        where, entry, view = value
        if isinstance(where, File) and where.is_type(entry):
            return self._names.member(where, entry, name, 1 if view == _SUPER else 0)
        return self._names.within((where, entry), name)


def _gathered(answers: Iterable[tuple[_Any, ...] | None]) -> tuple[_Any, ...] | None:
    """All that is found; else None where one of them is not known."""
    answers = list(answers)
    if len(answers) == 1:
        return answers[0]
    found: dict[_Any, None] = {}
    is_known = True
    for answer in answers:
        if answer is None:
            is_known = False
        else:
            found.update(dict.fromkeys(answer))
    if len(found) > MEANINGS_LIMIT:
        return None
    return tuple(found) if found or is_known else None
