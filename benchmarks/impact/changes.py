"""What changed from one moment to the next: functions of the program, and tests with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from benchmarks.impact.history import Files
from muniment.code.reading import read
from muniment.code.roles import is_test
from muniment.v1 import code_pb2

__all__ = ["Function", "Reader", "Step", "grep", "step_between"]

_CALLABLES = (code_pb2.SYMBOL_KIND_FUNCTION, code_pb2.SYMBOL_KIND_METHOD)


@dataclass(frozen=True)
class Function:
    """A function that stands in no other."""

    qualified_name: str
    name: str
    path: str
    line: int
    ast_hash: int
    text: str
    is_test: bool


@dataclass(frozen=True)
class Step:
    """One step of a history that changes functions and tests."""

    name: str
    changed: Sequence[Function]
    """Functions of the program, as they were before."""
    tests: Sequence[Function]
    """All tests that there were before."""
    changed_tests: frozenset[str]
    """Qualified names of those that changed with them."""


class Reader:
    """Reads files, each content once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, bytes], Sequence[Function]] = {}

    def functions(self, files: Files) -> dict[str, Function]:
        """The functions of these files by their names; of those that share one, none."""
        found = dict[str, list[Function]]()
        for path, content in files.items():
            for function in self._of(path, content):
                found.setdefault(function.qualified_name, []).append(function)
        return {name: same[0] for name, same in found.items() if len(same) == 1}

    def _of(self, path: str, content: bytes) -> Sequence[Function]:
        key = (path, blake2b(content, digest_size=16).digest())
        if key not in self._read:
            self._read[key] = _functions(path, content)
        return self._read[key]


def _functions(path: str, content: bytes) -> Sequence[Function]:
    symbols = read(path, "python", content)[0].symbols
    lines = content.decode(errors="replace").split("\n")
    names, found = list[str](), list[Function]()
    for symbol in symbols:
        above = names[symbol.parent - 1] if symbol.parent else path[:-3].replace("/", "::")
        names.append(f"{above}::{symbol.name}")
        within = symbol.parent and symbols[symbol.parent - 1].kind in _CALLABLES
        if symbol.kind in _CALLABLES and not within:
            text = "\n".join(lines[symbol.line - 1 : symbol.end_line])
            tests = is_test(path) and symbol.name.startswith("test")
            place = (names[-1], symbol.name, path, symbol.line)
            found.append(Function(*place, symbol.ast_hash, text, tests))
    return found


def step_between(name: str, reader: Reader, before: Files, after: Files) -> Step:
    """What changed; a function that came or went did not change."""
    old, new = reader.functions(before), reader.functions(after)
    changed = [
        function
        for name, function in old.items()
        if name in new and new[name].ast_hash != function.ast_hash
    ]
    return Step(
        name=name,
        changed=[one for one in changed if not is_test(one.path)],
        tests=[one for one in old.values() if one.is_test],
        changed_tests=frozenset(one.qualified_name for one in changed if one.is_test),
    )


def grep(step: Step, function: Function) -> list[str]:
    """Tests that have the function's name as a word, those that have it most often first."""
    word = re.compile(rf"\b{re.escape(function.name)}\b")
    times = {test.qualified_name: len(word.findall(test.text)) for test in step.tests}
    return sorted(
        (name for name, count in times.items() if count), key=lambda one: (-times[one], one)
    )
