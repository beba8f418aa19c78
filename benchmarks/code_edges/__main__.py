"""How right resolved call edges are: `make bench-edges`.

Packages from PyPI are read by our reader and indexed by scip-python (npm), which infers types as
Pyright does. An edge is a caller's definition and the definition of the function, method or class
that it calls, both of the package. Left out are calls where scip-python's symbol has another name
than what is called (see `scip.py`). *precision*: the share of our resolved edges that scip-python
has as well; it may be that ours are right and it says nothing. *recall*: the share of its edges
that ours have. *with candidates*: the same where candidates count too.
"""

from __future__ import annotations

import argparse
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.code_edges.scip import Call, Doubt, calls_by_scip, indexed
from benchmarks.counting.packages import Package, fetch
from benchmarks.stamp import stamp
from benchmarks.tables import table
from muniment.code.graph import CodeGraph, Edge, Place
from muniment.code.languages import language_of
from muniment.code.reading import read
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind, SymbolKind

_PLACE = Path(__file__).resolve().parents[2] / "build" / "code-edges"

_CALLABLE = {
    SymbolKind.SYMBOL_KIND_FUNCTION,
    SymbolKind.SYMBOL_KIND_METHOD,
    SymbolKind.SYMBOL_KIND_CLASS,
}

_PACKAGES = (
    Package(
        "sdist",
        "flask",
        "3.1.3",
        "BSD-3-Clause",
        "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
    ),
    Package(
        "sdist",
        "click",
        "8.5.1",
        "BSD-3-Clause",
        "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
    ),
    Package(
        "sdist",
        "requests",
        "2.34.2",
        "Apache-2.0",
        "f288924cae4e29463698d6d60bc6a4da69c89185ad1e0bcc4104f584e960b9ed",
    ),
    Package(
        "sdist",
        "httpx",
        "0.28.1",
        "BSD-3-Clause",
        "75e98c5f16b0f35b567856f597f06ff2270a374470a5c2392242528e3e3e42fc",
    ),
)


def unpacked(package: Package) -> Path:
    """The package's folder."""
    folder = _PLACE / f"{package.name}-{package.version}"
    if not folder.exists():
        with tarfile.open(fetch(package)) as packed:
            packed.extractall(_PLACE, filter="data")
    # Of a package in `src` scip-python does not know where its tests find it.
    return folder / "src" if (folder / "src").exists() else folder


def graph_of(root: Path) -> CodeGraph:
    """The graph of all Python files below."""
    graph = CodeGraph()
    changes = {}
    for path in sorted(root.rglob("*.py*")):
        relative, content = path.relative_to(root).as_posix(), path.read_bytes()
        language = language_of(relative, content[:8192])
        if language == "python":
            changes[relative] = (language, read(relative, language, content)[0])
    graph.replace(changes)
    return graph


def calls_of(graph: CodeGraph, certainties: set[EdgeCertainty.ValueType]) -> set[Call]:
    """Our call edges of these certainties."""
    return {
        call
        for path in graph.paths
        for edge in graph.edges_from(path)
        if edge.kind == EdgeKind.EDGE_KIND_CALLS and edge.certainty in certainties
        for call in _calls(graph, path, edge)
    }


def _calls(graph: CodeGraph, path: str, edge: Edge) -> Iterator[Call]:
    caller = _name(graph, Place(path, edge.scope_index))
    for target in edge.targets:
        if target.index < 0 or graph.symbol(target).kind not in _CALLABLE:
            continue
        name = _name(graph, target)
        if around := _method_around(graph, target):
            # scip-python leaves the method out of the name.
            name = name.replace(f".{around}.", ".")
        yield path, caller, target.path, name.removesuffix(".__init__")


def _method_around(graph: CodeGraph, place: Place) -> str:
    around = graph.parent(place)
    is_method = around.index >= 0 and graph.symbol(around).kind == SymbolKind.SYMBOL_KIND_METHOD
    return graph.symbol(around).name if is_method else ""


def _name(graph: CodeGraph, place: Place) -> str:
    file = graph.qualified_name(Place(place.path, -1))
    return graph.qualified_name(place).removeprefix(file).lstrip(":").replace("::", ".")


def _sure(calls: set[Call], doubts: set[Doubt]) -> set[Call]:
    return {one for one in calls if (one[0], one[1], one[3].rpartition(".")[2]) not in doubts}


def _shares(ours: set[Call], theirs: set[Call]) -> list[float]:
    both = len(ours & theirs)
    return [both / max(len(ours), 1), both / max(len(theirs), 1)]


def main() -> None:
    """Measure, and print the table with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one package")
    parser.add_argument("--show", action="store_true", help="list the edges that differ")
    options = parser.parse_args()
    print(__doc__)
    print(", ".join(f"{name} {fact}" for name, fact in stamp(Path.cwd()).items()), "\n")
    resolved = {EdgeCertainty.EDGE_CERTAINTY_RESOLVED}
    rows: list[list[object]] = []
    for package in _PACKAGES:
        if options.only not in (None, package.name):
            continue
        root = unpacked(package)
        began = time.process_time()
        graph = graph_of(root)
        ours = calls_of(graph, resolved)
        seconds = time.process_time() - began
        wide = calls_of(graph, resolved | {EdgeCertainty.EDGE_CERTAINTY_CANDIDATES})
        theirs, doubts = calls_by_scip(root, indexed(root, _PLACE / "tools"))
        ours, wide = _sure(ours, doubts), _sure(wide, doubts)
        shares = _shares(ours, theirs) + _shares(wide, theirs)
        rows.append([package.name, len(theirs), len(ours), *shares, seconds])
        if options.show:
            for word, calls in (("only ours", ours - theirs), ("only theirs", theirs - ours)):
                print("\n".join(f"{word}: {' '.join(call)}" for call in sorted(calls)))
    heads = ["package", "scip-python's", "ours", "precision", "recall"]
    print(table([*heads, "with candidates", "recall ", "our cpu s"], rows))


if __name__ == "__main__":
    main()
