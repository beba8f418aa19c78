"""Call edges as scip-python says them.

Its index says what each name in a file means; which names are called, and from where, says the
syntax tree.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Call", "Doubt", "calls_by_scip", "indexed"]

_VERSION = "0.6.6"
_SECONDS = 900

# Numbers of fields in scip.proto.
_DOCUMENTS, _PATH, _OCCURRENCES = 2, 1, 2
_RANGE, _SYMBOL, _ROLES = 1, 2, 3
_IS_DEFINITION = 1

# `Client#`, `get().`, `get(+1).`; other descriptors are variables, parameters, modules.
_DESCRIPTOR = re.compile(r"`([^`]+)`(#|\(\S*?\)\.|\.|/|:)?|(\w+)(#|\(\S*?\)\.|\.|/|:)")

Call = tuple[str, str, str, str]
"""Path and name of the caller, path and name of what is called; names as `Type.member`."""


@dataclass
class _Document:
    path: str
    meanings: dict[tuple[int, int], str] = field(default_factory=dict)
    """Line and column, from 0 -> symbol."""
    definitions: set[str] = field(default_factory=set)


def indexed(root: Path, tools: Path) -> Path:
    """The index of a package, made by scip-python from npm."""
    program = tools / "node_modules" / ".bin" / "scip-python"
    if not program.exists():
        tools.mkdir(parents=True, exist_ok=True)
        wanted = f"@sourcegraph/scip-python@{_VERSION}"
        install = ["npm", "install", "--silent", "--no-save", "--prefix", str(tools), wanted]
        subprocess.run(install, check=True, timeout=_SECONDS)
    path = tools / f"{root.parent.name}-{root.name}.scip"
    command = [str(program), "index", "--project-name", "p", "--project-version", "1"]
    subprocess.run(
        [*command, "--output", str(path)],
        cwd=root,
        check=True,
        capture_output=True,
        timeout=_SECONDS,
    )
    return path


Doubt = tuple[str, str, str]
"""Path and name of the caller, and the name that is called."""


def calls_by_scip(root: Path, index: Path) -> tuple[set[Call], set[Doubt]]:
    """All calls of the package's own functions, methods and classes; and where it errs.

    Through star imports it sometimes takes a neighbour for what is named: `WSGITransport` for the
    symbol of `ASGITransport`. What is called by a name that is neither the symbol's nor an alias is
    such a doubt.
    """
    documents = [
        _document(content)
        for number, content in _fields(index.read_bytes())
        if number == _DOCUMENTS
    ]
    homes = {symbol: one.path for one in documents for symbol in one.definitions}
    found, doubts = set(), set()
    for one in documents:
        source = (root / one.path).read_bytes()
        aliases = set(re.findall(rb"\bas\s+(\w+)", source))
        for caller, line, column, called in _called_names(source):
            symbol = one.meanings.get((line, column), "")
            name = _name(symbol)
            if not name or symbol not in homes:
                continue
            if called != name.rpartition(".")[2] and called.encode() not in aliases:
                doubts.add((one.path, caller, called))
            else:
                found.add((one.path, caller, homes[symbol], name))
    return found, doubts


def _document(content: bytes) -> _Document:
    document = _Document("")
    for number, value in _fields(content):
        if number == _PATH:
            document.path = value.decode()
        elif number == _OCCURRENCES:
            parts = dict(_fields(value))
            numbers = list(_varints(parts.get(_RANGE, b"")))
            symbol = parts.get(_SYMBOL, b"").decode()
            document.meanings.setdefault((numbers[0], numbers[1]), symbol)
            roles = parts.get(_ROLES, b"\0")
            if roles[0] & _IS_DEFINITION:
                document.definitions.add(symbol)
    return document


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each field of a protobuf message; a varint as its bytes."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        if key & 7 == 2:
            length, place = _varint(content, place)
            yield key >> 3, content[place : place + length]
            place += length
        else:
            start = place
            _, place = _varint(content, place)
            yield key >> 3, content[start:place]


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _varints(content: bytes) -> Iterator[int]:
    place = 0
    while place < len(content):
        value, place = _varint(content, place)
        yield value


def _name(symbol: str) -> str:
    """The name within its file; empty where it is none that is called."""
    descriptors = _DESCRIPTOR.findall(symbol.split(" ", 4)[-1]) if " " in symbol else []
    parts = [(quoted or bare, one or other) for quoted, one, bare, other in descriptors]
    inner = [name for name, kind in parts if kind != "/"]
    if not parts or not inner or not (parts[-1][1] == "#" or parts[-1][1].endswith(").")):
        return ""
    # A class that is called by its constructor's name.
    return ".".join(inner[:-1] if inner[-1] == "__init__" else inner)


def _called_names(source: bytes) -> Iterator[tuple[str, int, int, str]]:
    """The caller, and line, column and text of the last name of what it calls."""
    lines = source.split(b"\n")
    todo: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    while todo:
        node, scope = todo.pop()
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{scope}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else called.attr
            line = (called.end_lineno or 1) - 1
            before = lines[line][: called.end_col_offset].decode(errors="replace")
            yield inner, line, len(before) - len(name), name
        outside = {id(one) for one in getattr(node, "decorator_list", ())}
        todo += [
            (child, scope if id(child) in outside else inner)
            for child in ast.iter_child_nodes(node)
        ]
