"""Who imports whom, read from the code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.unit.house.source import SOURCE_ROOTS, Module, tracked_paths

__all__ = ["Import", "imports_of"]


@dataclass(frozen=True)
class Import:
    """One import of one module."""

    target: str
    """Dotted name of the module: of the member, where the member is a module known here."""
    line: int
    deferred: bool
    """Inside a function: it costs nothing until the function runs."""
    typing_only: bool
    """Under `if TYPE_CHECKING`."""


def imports_of(module: Module, known: Iterable[Module]) -> Iterator[Import]:
    """The module's imports, in order of the text."""
    names = {one.name for one in known} | _generated_names()
    yield from _walk(module.tree, names, deferred=False, typing_only=False)


def _walk(node: ast.AST, names: set[str], *, deferred: bool, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, deferred, typing_only)
        elif isinstance(child, ast.ImportFrom) and child.module:
            members = (f"{child.module}.{alias.name}" for alias in child.names)
            targets = {member if member in names else child.module for member in members}
            for target in sorted(targets):
                yield Import(target, child.lineno, deferred, typing_only)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _walk(
                child, names, deferred=deferred or inside, typing_only=typing_only or guarded
            )


@cache
def _generated_names() -> frozenset[str]:
    return frozenset(
        path.removeprefix(f"{path.split('/')[0]}/").removesuffix(".py").replace("/", ".")
        for path in tracked_paths()
        if path.split("/")[0] in SOURCE_ROOTS and "_pb2" in path and path.endswith(".py")
    )
