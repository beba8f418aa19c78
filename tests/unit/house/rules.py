"""The house's style as code: each rule yields what breaks it, as `path:line: what`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from tests.unit.house.names import references
from tests.unit.house.source import Module, TextFile

__all__ = [
    "FILE_LINES_LIMIT",
    "FUNCTION_LINES_LIMIT",
    "LINE_COLUMNS_LIMIT",
    "PYTHON_RULES",
    "TEXT_RULES",
]

LINE_COLUMNS_LIMIT = 100
FILE_LINES_LIMIT = 500
FUNCTION_LINES_LIMIT = 60

# In pieces, so that this file does not break its own rules.
_REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("debian", "org"),
        ("crates", "io"),
    )
)
_MACHINE_PATH = re.compile(r"(?<![\w.}\])-])/(?:" + "|".join(("work", "root", "tmp/w")) + r")\b")
_MARKER = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")

_CLOCKS = re.compile(
    r"time\.(time|monotonic|perf_counter|process_time)(_ns)?|time\.(gmtime|localtime)"
    r"|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today"
)
_RANDOM = re.compile(r"(random|secrets)\.\w+|os\.urandom|uuid\.uuid[1467]")
_SLEEPS = re.compile(r"(time|asyncio|anyio|trio)\.sleep")
_WRITING_METHODS = ("write_text", "write_bytes", "touch")
_WRITING_FLAGS = ("os.O_WRONLY", "os.O_RDWR", "os.O_CREAT")
_COPIES = re.compile(r"shutil\.(copy\w*|move)")


def whitespace(file: TextFile) -> Iterator[str]:
    """No tabs, no CR, nothing at the end of a line, one newline at the end of the file."""
    may_tab = file.path == "Makefile"
    for number, line in enumerate(file.lines, 1):
        if "\r" in line:
            yield f"{file.path}:{number}: a carriage return"
        elif line != line.rstrip():
            yield f"{file.path}:{number}: white space at the end of the line"
        if "\t" in line and not may_tab:
            yield f"{file.path}:{number}: a tab"
    if file.text and (not file.text.endswith("\n") or file.text.endswith("\n\n")):
        yield f"{file.path}:{len(file.lines)}: a file ends with one newline"


def unfinished(file: TextFile) -> Iterator[str]:
    """No markers of unfinished work: it is done, or it is an issue."""
    for number, line in enumerate(file.lines, 1):
        if found := _MARKER.search(line):
            yield f"{file.path}:{number}: {found[0]}"


def machine(file: TextFile) -> Iterator[str]:
    """No address of a package registry, and no path of one machine."""
    for number, line in enumerate(file.lines, 1):
        for host in _REGISTRY_HOSTS:
            if host in line:
                yield f"{file.path}:{number}: names the registry host {host}"
        if found := _MACHINE_PATH.search(line):
            yield f"{file.path}:{number}: names {found[0]}, a path of one machine"


def columns(module: Module) -> Iterator[str]:
    """A line over the limit is a thought that is not finished."""
    for number, line in enumerate(module.lines, 1):
        if len(line) > LINE_COLUMNS_LIMIT:
            yield f"{module.path}:{number}: {len(line)} columns"


def docstring(module: Module) -> Iterator[str]:
    """A module's docstring tells a newcomer what the room is for."""
    if not ast.get_docstring(module.tree):
        yield f"{module.path}:1: no docstring"


def long_file(module: Module) -> Iterator[str]:
    """A file is one idea."""
    count = len(module.lines) - 1
    if count > FILE_LINES_LIMIT:
        yield f"{module.path}:{count}: {count} lines"


def long_function(module: Module) -> Iterator[str]:
    """A function says one thing."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            count = node.end_lineno - node.lineno + 1
            if count > FUNCTION_LINES_LIMIT:
                yield f"{module.path}:{node.lineno}: {node.name} has {count} lines"


def clock(module: Module) -> Iterator[str]:
    """Time is handed in, so that a whole house can run on a virtual clock."""
    yield from _uses(module, _CLOCKS, "reads a clock")


def randomness(module: Module) -> Iterator[str]:
    """Randomness is handed in, so that a whole house can run under a seed."""
    yield from _uses(module, _RANDOM, "draws randomness")


def file_writing(module: Module) -> Iterator[str]:
    """Files are written through kit.files: private, and whole or not at all."""
    if not module.in_house:
        return
    yield from _uses(module, _COPIES, "writes a file")
    meanings = {id(node): dotted for node, dotted in references(module.tree)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _opens_for_writing(node, meanings):
            yield f"{module.path}:{node.lineno}: writes a file"


def printing(module: Module) -> Iterator[str]:
    """The bridge's stdout is a protocol; only the command line and scripts talk to people."""
    talks = ("services/muniment/cli/", "examples/", "benchmarks/")
    if module.path.startswith(talks):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id == "print":
            yield f"{module.path}:{node.lineno}: prints"


def sleeping(module: Module) -> Iterator[str]:
    """A test waits for what it needs, with a deadline, and never for time to pass."""
    if not module.in_tests:
        return
    meanings = {id(node): dotted for node, dotted in references(module.tree)}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not _SLEEPS.fullmatch(meanings.get(id(node.func), "")):
            continue
        yields_only = [ast.unparse(argument) for argument in node.args] == ["0"]
        if not yields_only:
            yield f"{module.path}:{node.lineno}: sleeps"


def _uses(module: Module, what: re.Pattern[str], does: str) -> Iterator[str]:
    if not module.in_house:
        return
    for node, dotted in references(module.tree):
        if what.fullmatch(dotted):
            yield f"{module.path}:{node.lineno}: {does} ({dotted})"


def _opens_for_writing(call: ast.Call, meanings: dict[int, str]) -> bool:
    function = call.func
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(function, ast.Attribute) and function.attr in _WRITING_METHODS:
        return True
    if meanings.get(id(function)) == "os.open":
        used = {meanings.get(id(node)) for one in arguments for node in ast.walk(one)}
        return bool(used & set(_WRITING_FLAGS)) and "os.devnull" not in used
    if isinstance(function, ast.Name) and function.id == "open":
        place = 1
    elif isinstance(function, ast.Attribute) and function.attr in ("open", "fdopen"):
        # io.open and os.fdopen take the mode second; a path's own open takes it first.
        place = 1 if id(function) in meanings else 0
    else:
        return False
    mode = next((one.value for one in call.keywords if one.arg == "mode"), None)
    mode = mode or next(iter(call.args[place:]), None)
    if not isinstance(mode, ast.Constant):
        return mode is not None
    return bool(set(str(mode.value)) & set("wax+"))


TEXT_RULES: dict[str, Callable[[TextFile], Iterator[str]]] = {
    "white space": whitespace,
    "unfinished work": unfinished,
    "this machine": machine,
}

PYTHON_RULES: dict[str, Callable[[Module], Iterator[str]]] = {
    "columns": columns,
    "docstring": docstring,
    "long file": long_file,
    "long function": long_function,
    "clock": clock,
    "randomness": randomness,
    "file writing": file_writing,
    "printing": printing,
    "sleeping": sleeping,
}
