"""Which file, folder or package an import means."""

from __future__ import annotations

import posixpath
import sys
from typing import NamedTuple

from muniment.code.resolving.files import File
from muniment.code.resolving.tree import Tree

__all__ = ["Group", "Target", "Trace", "file_at", "files_of", "import_target", "module_at"]

Trace = set[tuple[File, str] | str]
"""What was read: names of files, and wants (see Tree)."""

_SCRIPT_ENDINGS = (".d.ts", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_SCRIPT_ROOTS = ("@/", "~/", "#/", "$lib/")


class Group(NamedTuple):
    """Several files that are imported as one: a folder, or a package by its name."""

    family: str
    kind: str
    """`folder` or `package`."""
    name: str


class Target(NamedTuple):
    """What a module means: a file or group, and names in it that are left to be looked up."""

    module: File | Group
    rest: tuple[str, ...] = ()


def import_target(tree: Tree, file: File, module: str, trace: Trace) -> Target | None:
    """What the file means by that module; None where it is none of the tree."""
    family = file.rules.family
    if family == "rust":
        return _rust(tree, file, module, trace)
    if family == "python":
        found = _python(tree, file, module, trace)
    elif family == "script":
        found = _script(tree, file, module, trace)
    elif family == "go":
        found = _go(tree, file, module, trace)
    else:
        return _by_package(tree, file, module, trace)
    return Target(found) if found else None


def files_of(tree: Tree, group: Group) -> list[File]:
    """The files that a group is made of, by path."""
    return sorted(tree.packages.get((group.family, group.name), ()), key=lambda one: one.path)


def module_at(tree: Tree, family: str, location: str, trace: Trace) -> File | Group | None:
    """The file at a location, or the folder where there is none."""
    trace.add(f"at {family} {location}")
    if files := tree.places.get((family, location)):
        # One module may be written twice, as `a.py` beside `a.pyi`: what runs comes first.
        return min(files, key=lambda one: (one.path.endswith((".pyi", ".d.ts")), one.path))
    if location and (family, location) in tree.folders:
        return Group(family, "folder", location)
    return None


def file_at(tree: Tree, family: str, location: str, trace: Trace) -> File | None:
    """The file at a location."""
    found = module_at(tree, family, location, trace)
    return found if isinstance(found, File) else None


def _python(tree: Tree, file: File, module: str, trace: Trace) -> File | Group | None:
    bare = module.lstrip(".")
    parts = bare.replace(".", "/")
    if dots := len(module) - len(bare):
        folder = posixpath.dirname(file.path)
        for _ in range(dots - 1):
            if not folder:
                return None
            folder = posixpath.dirname(folder)
        return module_at(tree, "python", posixpath.join(folder, parts).rstrip("/"), trace)
    brought = bare.partition(".")[0] in sys.stdlib_module_names
    found = []
    for root in _roots(tree, "python", parts, trace):
        folder = root.rstrip("/")
        trace.add(f"at python {folder}")
        if not _is_package(tree, folder) and (not brought or file.path.startswith(root)):
            found.append(root)
    if not found:
        return None
    return module_at(tree, "python", _nearest(found, file.path) + parts, trace)


def _is_package(tree: Tree, folder: str) -> bool:
    files = tree.places.get(("python", folder), ()) if folder else ()
    return any(one.path.startswith(f"{folder}/") for one in files)


def _roots(tree: Tree, family: str, location: str, trace: Trace) -> list[str]:
    """What may stand before a location so that something is there."""
    last = location.rpartition("/")[2]
    trace.add(f"end {family} {last}")
    return [
        one.removesuffix(location)
        for one in tree.ends.get((family, last), ())
        if one == location or one.endswith(f"/{location}")
    ]


def _nearest(roots: list[str], path: str) -> str:
    """The root that shares most folders with the path; of such, the shortest."""

    def far(root: str) -> tuple[int, int, str]:
        common = 0
        for one, other in zip(root.split("/"), path.split("/"), strict=False):
            if one != other:
                break
            common += 1
        return (-common, len(root), root)

    return min(roots, key=far)


def _script(tree: Tree, file: File, module: str, trace: Trace) -> File | None:
    if module.startswith("."):
        folder = posixpath.dirname(file.path)
        location = posixpath.normpath(posixpath.join(folder, module))
        if location.startswith(".."):
            return None
        return _script_at(tree, "" if location == "." else location, trace)
    for alias in _SCRIPT_ROOTS:
        if module.startswith(alias):
            module = module.removeprefix(alias)
            break
    else:
        # A package, unless it is a folder of the tree: `src/util`.
        top = module.partition("/")[0]
        trace.add(f"at script {top}")
        if "/" not in module or ("script", top) not in tree.folders:
            return None
    location = _without_ending(module)
    if roots := _roots(tree, "script", location, trace):
        return _script_at(tree, _nearest(roots, file.path) + location, trace)
    return None


def _script_at(tree: Tree, location: str, trace: Trace) -> File | None:
    found = file_at(tree, "script", location, trace)
    if found is None and (bare := _without_ending(location)) != location:
        found = file_at(tree, "script", bare, trace)
    return found


def _without_ending(module: str) -> str:
    for ending in _SCRIPT_ENDINGS:
        if module.endswith(ending):
            return module.removesuffix(ending)
    return module


def _rust(tree: Tree, file: File, module: str, trace: Trace) -> Target | None:
    """`crate`, `self` and `super` from the file's own place; else a module or crate by its name."""
    parts = module.replace("::", ".").strip(".").split(".")
    at = file.location
    if parts[0] == "crate":
        at, parts = _crate_root(tree, file.path, trace), parts[1:]
    elif parts[0] in ("self", "super"):
        while parts and parts[0] in ("self", "super"):
            if parts.pop(0) == "super":
                at = posixpath.dirname(at)
    elif not file_at(tree, "rust", posixpath.join(at, parts[0]), trace):
        crate = _other_crate(tree, file, parts[0], trace)
        if crate is None:
            return Target(file, tuple(parts))
        at, parts = crate, parts[1:]
    # As far as there are files; what is left are modules and types within the last.
    taken = 0
    while taken < len(parts) and file_at(tree, "rust", posixpath.join(at, parts[taken]), trace):
        at = posixpath.join(at, parts[taken])
        taken += 1
    found = file_at(tree, "rust", at, trace)
    return Target(found, tuple(parts[taken:])) if found else None


def _crate_root(tree: Tree, path: str, trace: Trace) -> str:
    """The nearest folder around with a `lib.rs` or `main.rs`."""
    folder = posixpath.dirname(path)
    while True:
        trace.add(f"at rust {folder}")
        for one in tree.places.get(("rust", folder), ()):
            if one.path.endswith(("lib.rs", "main.rs")):
                return folder
        if not folder:
            return posixpath.dirname(path)
        folder = posixpath.dirname(folder)


def _other_crate(tree: Tree, file: File, name: str, trace: Trace) -> str | None:
    """The source folder of a crate of that name in the same tree."""
    found = []
    for spelled in {name, name.replace("_", "-")}:
        location = f"{spelled}/src"
        found += [root + location for root in _roots(tree, "rust", location, trace)]
    return _nearest(found, file.path) if found else None


def _go(tree: Tree, file: File, module: str, trace: Trace) -> Group | None:
    """The folder whose path ends the import's path; the longest such counts."""
    if "." not in module.partition("/")[0]:
        # The standard library, unless the tree's own module has a name without a dot.
        trace.add(f"at go {module.partition('/')[2]}")
        if ("go", module.partition("/")[2]) not in tree.folders:
            return None
    last = module.rpartition("/")[2]
    trace.add(f"end go {last}")
    folders = [
        one
        for one in tree.ends.get(("go", last), ())
        if (module == one or module.endswith(f"/{one}")) and ("go", one) in tree.packages
    ]
    return Group("go", "folder", max(folders, key=len)) if folders else None


def _by_package(tree: Tree, file: File, module: str, trace: Trace) -> Target | None:
    """A package by its name, a type of one; else a file, as `#include` and `require` name it."""
    family = file.rules.family
    dotted = module.replace("::", ".").replace("\\", ".").strip(".")
    for spelled in dict.fromkeys((module, dotted)):
        outer, _, last = spelled.rpartition(".")
        for package, rest in ((spelled, ()), (outer, (last,))):
            trace.add(f"package {family} {package}")
            if (family, package) in tree.packages:
                return Target(Group(family, "package", package), rest)
    bare = posixpath.splitext(module)[0]
    folder = posixpath.dirname(file.path)
    location = posixpath.normpath(posixpath.join(folder, bare))
    found = file_at(tree, family, location, trace)
    bare = bare.lstrip("./")
    if found is None and bare and (roots := _roots(tree, family, bare, trace)):
        found = file_at(tree, family, _nearest(roots, file.path) + bare, trace)
    return Target(found) if found else None
