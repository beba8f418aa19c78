"""The same files have the same edges, whatever the way to them."""

from __future__ import annotations

from random import Random

import pytest

from muniment.code.graph import CodeGraph, Edge
from muniment.v1.store_pb2 import CodeFacts
from tests.support.code_facts import Facts

PATHS = ["p/__init__.py", "p/a.py", "p/b.py", "p/q/__init__.py", "p/q/a.py", "b.py", "c.go", "d.go"]
MODULES = ["p", "p.a", "p.q", ".a", ".b", "..b", ".", "p.q.a", "b", "os"]
NAMES = ["A", "B", "f", "x"]


def some_facts(random: Random) -> CodeFacts:
    """A file of few names, so that they meet; circles of imports and bases among them."""
    facts, scopes = Facts(), [""]
    for _ in range(random.randrange(5)):
        name = random.choice(["", "*", *NAMES, *NAMES])
        facts.imports(random.choice(MODULES), name, within=random.choice(scopes))
    for _ in range(random.randrange(2, 10)):
        name, within = random.choice(NAMES), random.choice(scopes)
        kind = random.choice(["class", "class", "function", "method", "constant", "other"])
        bases = [_chain(random, 2)] if kind == "class" and random.random() < 0.7 else []
        type_ = _chain(random, 2) if random.random() < 0.5 else ""
        facts.define(
            kind,
            name,
            within,
            bases=bases,
            type_=type_,
            is_property=random.random() < 0.2,
            receiver=_chain(random, 2) if kind in ("method", "other") and not within else "",
        )
        scopes.append(f"{within}.{name}" if within else name)
        for base in bases:
            facts.mention("inherits", base, scopes[-1])
    for _ in range(random.randrange(4)):
        is_type = random.random() < 0.4
        value = _chain(random, 3) + ("" if is_type else "()" * random.randrange(2))
        facts.bind(random.choice(NAMES), value, random.choice(scopes), is_type=is_type)
    for _ in range(random.randrange(20)):
        chain, line = _chain(random, 4), random.randrange(1, 50)
        facts.mention(
            random.choice(["calls", "references"]), chain, random.choice(scopes), line=line
        )
    return facts.made()


def _chain(random: Random, length: int) -> str:
    first = random.choice([*NAMES, *NAMES, "self", "cls", "super()", "?", "p"])
    rest = [
        random.choice(NAMES) + "()" * (random.random() < 0.3)
        for _ in range(random.randrange(length))
    ]
    return ".".join([first, *rest]).removesuffix("()")


def edges(graph: CodeGraph) -> dict[str, list[Edge]]:
    return {path: graph.edges_from(path) for path in graph.paths}


def language(path: str) -> str:
    return "go" if path.endswith(".go") else "python"


@pytest.mark.parametrize("seed", range(8))
def test_the_same_files_have_the_same_edges(seed: int) -> None:
    random = Random(seed)
    graph = CodeGraph()
    files: dict[str, CodeFacts] = {}
    for _ in range(25):
        changes: dict[str, tuple[str, CodeFacts] | None] = {}
        for path in random.sample(PATHS, random.choice([1, 1, 2, 5])):
            drawn = random.random()
            if drawn < 0.25:
                changes[path] = None
            elif drawn < 0.4 and files:
                # A file that is moved or copied.
                changes[path] = (language(path), files[random.choice(sorted(files))])
            else:
                changes[path] = (language(path), some_facts(random))
        graph.replace(changes)
        for path, change in changes.items():
            files.pop(path, None)
            if change:
                files[path] = change[1]
        if random.random() < 0.6:
            continue
        fresh = CodeGraph()
        for path in random.sample(sorted(files), len(files)):
            fresh.replace({path: (language(path), files[path])})
        assert edges(graph) == edges(fresh)
        assert graph.counts() == fresh.counts()
        assert [graph.find(name) for name in NAMES] == [fresh.find(name) for name in NAMES]


def test_some_of_these_edges_are_certain() -> None:
    random, graph = Random(1), CodeGraph()
    for _ in range(30):
        graph.replace({path: (language(path), some_facts(random)) for path in PATHS})
        if graph.counts().resolved > 10 and graph.counts().candidates:
            return
    pytest.fail("the generator makes files that have nothing to do with each other")


def test_circles_and_long_chains_end() -> None:
    long = ".".join(["f()"] * 10_000)
    facts = (
        Facts()
        .imports(".b", "*").imports(".b", "x")
        .define("class", "A", bases=["B"]).define("class", "B", bases=["A"])
        .bind("y", "z").bind("z", "y").bind("w", "w.w()")
        .call(long + ".g").call("y.run").call("x").call("w.a.b").call("A.run")
        .bind("v", long).call("v.run")
    )  # fmt: skip
    other = Facts().imports(".a", "*").imports(".a", "x")
    graph = CodeGraph()
    graph.replace({"p/a.py": ("python", facts.made()), "p/b.py": ("python", other.made())})
    assert all(edge.certainty for path in graph.paths for edge in graph.edges_from(path))
