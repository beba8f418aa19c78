"""What a language's module says of it, beside its query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muniment.code.hashing import Layout
from muniment.code.limits import FILE_SYMBOLS_LIMIT
from muniment.code.source import Source

__all__ = ["Import", "Rules"]


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import binds; see `CodeImport` of the store's contract.

    Attributes:
        at: Offset in the source, for its line and scope.
    """

    at: int
    local: str = ""
    module: str = ""
    name: str = ""
    is_star: bool = False
    is_exported: bool = False


def _no_imports(source: Source, start: int, end: int) -> Iterable[Import]:
    return ()


@dataclass(frozen=True, slots=True)
class Rules:
    """How a language is read.

    Attributes:
        grammar: Module of the grammar's wheel, and its function that gives the grammar.
        query: Names of the `.scm` files beside this module whose patterns are used, joined.
        layout: What white space means, for the hash.
        imports: Takes an `@import` apart, which stands at these offsets of the source.
        prefixes: Words that stand before a chain and are no part of it.
        wrappers: Generic types whose members are those of their first argument.
        selves: Words for the value whose type is being declared; `self.x` is its type's binding.
        nothing: Values that tell nothing of what holds them.
        names_are_own: Whether a plain name can only be one that the file defines or imports. Then
            each use of such a name is a reference, without a capture.
        has_bare_keys: Whether a name before a colon in braces is a key and names nothing.
        passed_over: Parts of a chain after which what is meant is the same.
        maker: The member of a type that makes a value of it: `Foo.new` is `Foo()`.
        symbols_limit: How many symbols of a file are read.
        doc_marks: Beginnings of comments that document what stands below them.
    """

    grammar: tuple[str, str]
    query: tuple[str, ...]
    layout: Layout = Layout.FREE
    imports: Callable[[Source, int, int], Iterable[Import]] = _no_imports
    prefixes: frozenset[bytes] = frozenset({b"await", b"new"})
    wrappers: frozenset[str] = frozenset()
    selves: frozenset[str] = field(default=frozenset({"self", "this"}))
    nothing: frozenset[str] = frozenset({"None", "nil", "null", "undefined"})
    names_are_own: bool = False
    has_bare_keys: bool = False
    passed_over: re.Pattern[str] | None = None
    maker: str = ""
    symbols_limit: int = FILE_SYMBOLS_LIMIT
    doc_marks: tuple[str, ...] = ("/", "#", "--", ";")
