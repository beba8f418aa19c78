"""Who calls whom: the import graph of the shipped packages, as it is in the code.

`python -m tests.unit.house.layers` draws it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.unit.house.imports import Import, imports_of
from tests.unit.house.source import Module, houses_modules

__all__ = [
    "FRONT",
    "MAY_IMPORT",
    "draw",
    "front_closure",
    "package_of",
    "reachable",
    "wrong_front_imports",
    "wrong_package_imports",
]

MAY_IMPORT: dict[str, frozenset[str]] = {
    "bridge": frozenset({"workflows", "kit", "v1"}),
    "cli": frozenset({"workflows", "kit", "v1"}),
    "workflows": frozenset({"kit", "v1"}),
    "memory": frozenset({"kit", "v1"}),
    "slots": frozenset({"kit", "v1"}),
    "code": frozenset({"kit", "v1"}),
    "kit": frozenset({"v1"}),
    "v1": frozenset(),
}
"""The one arrow. A service speaks to another through its contract and imports none."""

FRONT = "muniment.bridge.front"
"""What a harness spawns. It starts in milliseconds, so it imports the standard library only."""

# Of other packages. What these import of the kit has to be as light.
_FRONT_MAY_IMPORT = frozenset(
    {
        "muniment.kit",
        "muniment.kit.errors",
        "muniment.kit.identity",
        "muniment.kit.paths",
        "muniment.kit.supervise",
    }
)

# Deferred imports of the front's modules that are worth their price.
_FRONT_MAY_DEFER = {
    "platformdirs": "only where MUNIMENT_HOME is not set",
}


def package_of(name: str) -> str:
    """The room that a module belongs to: `kit` for `muniment.kit.paths`."""
    return [*name.split("."), ""][1]


def reachable(
    start: str, modules: Iterable[Module], *, deferred: bool = False
) -> dict[str, list[tuple[str, Import]]]:
    """What runs when the module is imported: target -> who imports it.

    Follows shipped modules, the packages that they are in included, and deferred imports only
    where asked to; never typing-only ones.
    """
    by_name = {module.name: module for module in modules}
    found: dict[str, list[tuple[str, Import]]] = {}
    seen, todo = set[str](), [start]
    while todo:
        name = todo.pop()
        if name in seen or name not in by_name:
            continue
        seen.add(name)
        todo.append(name.rpartition(".")[0])
        for one in imports_of(by_name[name], by_name.values()):
            if not one.typing_only and (deferred or not one.deferred):
                found.setdefault(one.target, []).append((name, one))
                todo.append(one.target)
    return found


def wrong_package_imports(modules: Iterable[Module]) -> Iterator[str]:
    """Imports against the arrow, deferred ones too, and packages that nobody placed."""
    modules = tuple(modules)
    for module in modules:
        package = package_of(module.name)
        if package not in MAY_IMPORT:
            yield f"{module.path}:1: the package {package!r} has no place in MAY_IMPORT"
            continue
        for one in imports_of(module, modules):
            target = package_of(one.target) if one.target.startswith("muniment.") else package
            if target != package and target not in MAY_IMPORT[package]:
                yield f"{module.path}:{one.line}: {package} may not import {one.target}"


def front_closure(modules: Iterable[Module]) -> frozenset[str]:
    """The shipped modules that the front is made of."""
    modules = tuple(modules)
    names = {module.name for module in modules}
    return frozenset({FRONT, *reachable(FRONT, modules, deferred=True)} & names)


def wrong_front_imports(modules: Iterable[Module]) -> Iterator[str]:
    """Imports by which the front would need more than the standard library."""
    by_name = {module.name: module for module in modules}
    for name in sorted(front_closure(by_name.values())):
        module = by_name[name]
        for one in imports_of(module, by_name.values()):
            top = one.target.split(".")[0]
            light = top in sys.stdlib_module_names or one.target in _FRONT_MAY_IMPORT
            # What it imports of its own package is in the closure, and so held to the same.
            ours = top == "muniment" and package_of(one.target) == package_of(name)
            excused = one.deferred and top in _FRONT_MAY_DEFER
            if not (light or ours or excused or one.typing_only):
                yield f"{module.path}:{one.line}: the front may not import {one.target}"


def draw(modules: Iterable[Module]) -> str:
    """Who calls whom, as text: one line a package, with the number of imports."""
    modules = tuple(modules)
    arrows: dict[str, Counter[str]] = {}
    for module in modules:
        package = package_of(module.name)
        counts = arrows.setdefault(package, Counter())
        for one in imports_of(module, modules):
            target = package_of(one.target) if one.target.startswith("muniment.") else package
            if target != package:
                counts[target] += 1
    width = max(map(len, arrows), default=0)
    lines = [
        f"{package:<{width}} → " + ", ".join(f"{name} ({n})" for name, n in counts.most_common())
        if counts
        else f"{package:<{width}} calls no one"
        for package, counts in sorted(arrows.items(), key=lambda item: _height(item[0]))
    ]
    front = ", ".join(sorted(name.removeprefix("muniment.") for name in front_closure(modules)))
    return "\n".join([*lines, "", f"the front is {front}", ""])


def _height(package: str) -> int:
    return list(MAY_IMPORT).index(package) if package in MAY_IMPORT else len(MAY_IMPORT)


if __name__ == "__main__":
    sys.stdout.write(draw(houses_modules()))
