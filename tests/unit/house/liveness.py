"""Who is called by nobody: modules that nothing imports, names that nothing uses."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from muniment.code import languages
from tests.unit.house.imports import imports_of
from tests.unit.house.source import ROOT, Module

__all__ = ["entry_points", "unused_modules", "unused_names"]

# Decorators that change how a function is called, and call it not.
_PASSIVE_DECORATORS = {
    "abstractmethod", "asynccontextmanager", "cache", "cached_property", "classmethod",
    "contextmanager", "dataclass", "final", "lru_cache", "overload", "override", "property",
    "runtime_checkable", "setter", "staticmethod", "total_ordering", "unique", "wraps",
}  # fmt: skip


@dataclass(frozen=True)
class _Definition:
    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Name
    name: str
    qualified: str
    owner: str | None
    """The class whose method it is."""


@cache
def entry_points() -> frozenset[str]:
    """`module:function` of the console scripts, and modules that the Makefile runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = re.findall(r"-m ([\w.]+)", (ROOT / "Makefile").read_text())
    return frozenset((*project.get("scripts", {}).values(), *run))


def unused_modules(modules: Iterable[Module]) -> Iterator[str]:
    """Shipped modules, and helpers of tests, that nothing imports or starts."""
    modules = tuple(modules)
    imported = {
        one.target for module in modules for one in imports_of(module, modules) if module.name
    }
    started = {entry.split(":")[0] for entry in entry_points()}
    started |= {f"{languages.__name__}.{name}" for name in languages.LANGUAGES}  # loaded by name
    for module in modules:
        last = module.path.split("/")[-1]
        helper = module.in_tests and not re.fullmatch(r"(test_.*|conftest|__init__)\.py", last)
        if not (module.in_house or helper):
            continue
        if last == "__init__.py":
            alive = any(other.startswith(f"{module.name}.") for other in imported | started)
        else:
            alive = last == "__main__.py" or module.name in imported | started
            alive = alive or (helper and 'if __name__ == "__main__":' in module.text)
        if not alive:
            yield f"{module.path}:1: nothing imports it"


def unused_names(modules: Iterable[Module]) -> Iterator[str]:
    """Functions, methods, classes and constants of shipped modules that no shipped code uses.

    A use is counted by its bare name, so namesakes hide each other; an export, an import and a
    use within the thing itself are none. What frameworks call is known by its decorator, or by
    the foreign base class that has a member of this name.
    """
    modules = tuple(modules)
    uses = Counter[str]()
    for module in modules:
        if not module.in_tests:
            uses.update(_used_names(module.tree))
    entries = {entry.split(":")[1] for entry in entry_points() if ":" in entry}
    for module in modules:
        if not module.in_house:
            continue
        for found in _definitions(module):
            own = Counter(_used_names(found.node))[found.name]
            if uses[found.name] > own or found.name in entries or _called_by_frameworks(found):
                continue
            yield f"{module.path}:{found.node.lineno}: nothing uses {found.qualified}"


def _used_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _definitions(module: Module) -> Iterator[_Definition]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _Definition(module, node, node.name, node.name, None)
        elif isinstance(node, ast.ClassDef):
            yield _Definition(module, node, node.name, node.name, None)
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    qualified = f"{node.name}.{member.name}"
                    yield _Definition(module, member, member.name, qualified, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield _Definition(module, target, target.id, target.id, None)


def _called_by_frameworks(found: _Definition) -> bool:
    if re.fullmatch(r"__\w+__", found.name):
        return True
    if isinstance(found.node, ast.Name):
        return False
    if any(_decorator(one) not in _PASSIVE_DECORATORS for one in found.node.decorator_list):
        return True
    if found.owner is None:
        return False
    owner = getattr(importlib.import_module(found.module.name), found.owner)
    foreign = (base for base in owner.__mro__ if not _is_written_here(base))
    return any(found.name in vars(base) for base in foreign)


def _decorator(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return ast.unparse(node).split(".")[-1]


def _is_written_here(base: type) -> bool:
    return base.__module__.startswith("muniment.") and not base.__module__.startswith(
        "muniment.v1."
    )
