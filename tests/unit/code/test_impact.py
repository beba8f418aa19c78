"""Who depends on a definition."""

from __future__ import annotations

from muniment.code.graph import CodeGraph, Place
from muniment.code.impact import Dependent, dependents
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind
from tests.support.code_facts import Facts

CALLS, INHERITS = EdgeKind.EDGE_KIND_CALLS, EdgeKind.EDGE_KIND_INHERITS


def impact(facts: Facts, name: str, depth: int = 16) -> dict[str, Dependent]:
    """Dependents within one file, by their name in it."""
    graph = CodeGraph()
    graph.replace({"a.py": ("python", facts.made())})
    found = dependents(
        graph,
        graph.find(name).places,
        depth,
        lambda place: 0 if place.index < 0 else graph.symbol(place).changed_scan,
    )
    return {graph.qualified_name(one.place).removeprefix("a::"): one for one in found}


def chain(length: int) -> Facts:
    """Functions of which each calls the one before."""
    facts = Facts().define("function", "f0", changed_scan=5)
    for number in range(1, length):
        facts.define("function", f"f{number}", changed_scan=number)
        facts.call(f"f{number - 1}", f"f{number}", line=number)
    return facts


def test_dependents_are_transitive_up_to_the_depth() -> None:
    found = impact(chain(20), "a::f0", depth=16)
    assert [one.depth for one in found.values()] == list(range(1, 17))
    assert found["f3"].through == Place("a.py", 2)
    assert found["f3"].at_line == 3
    assert list(impact(chain(20), "a::f0", depth=1)) == ["f1"]


def test_who_was_changed_before_the_target_is_stale() -> None:
    found = impact(chain(8), "a::f0")
    assert [name for name, one in found.items() if one.is_stale] == ["f1", "f2", "f3", "f4"]


def test_each_dependent_once_with_its_least_depth_and_strongest_use() -> None:
    facts = (
        Facts().define("function", "f").define("function", "g")
        .mention("references", "f", "g", line=1).call("f", "g", line=9)
        .define("function", "h").call("g", "h").call("f", "h").call("h", "f")
    )  # fmt: skip
    found = impact(facts, "a::f")
    assert {name: (one.depth, one.via) for name, one in found.items()} == {
        "g": (1, CALLS),
        "h": (1, CALLS),
    }
    assert found["g"].at_line == 9


def test_a_circle_ends() -> None:
    facts = Facts()
    for name in "fgh":
        facts.define("function", name)
    facts.call("g", "f").call("h", "g").call("f", "h")
    assert [(name, one.depth) for name, one in impact(facts, "a::f").items()] == [
        ("h", 1),
        ("g", 2),
    ]


def types() -> Facts:
    return (
        Facts()
        .define("class", "Base").define("method", "run", "Base")
        .define("class", "Sub", bases=["Base"]).define("method", "run", "Sub", line=40)
        .mention("inherits", "Base", "Sub")
        .define("function", "use").bind("one", "Base", "use", is_type=True).call("one.run", "use")
        .define("method", "__init__", "Sub")
        .define("function", "make").call("Sub", "make")
    )  # fmt: skip


def test_overriding_methods_depend_on_what_they_override() -> None:
    found = impact(types(), "Base::run")
    assert found["Sub::run"].via == INHERITS
    assert found["Sub::run"].at_line == 40
    assert found["use"].certainty == EdgeCertainty.EDGE_CERTAINTY_RESOLVED


def test_a_call_of_the_bases_method_may_mean_the_override() -> None:
    found = impact(types(), "Sub::run")
    assert {name: one.certainty for name, one in found.items()} == {
        "use": EdgeCertainty.EDGE_CERTAINTY_CANDIDATES
    }


def test_making_a_value_depends_on_the_constructor() -> None:
    assert list(impact(types(), "Sub::__init__")) == ["make"]


def test_bases_in_a_circle() -> None:
    facts = (
        Facts()
        .define("class", "A", bases=["B"]).define("method", "run", "A")
        .define("class", "B", bases=["A"]).define("method", "run", "B")
        .mention("inherits", "B", "A").mention("inherits", "A", "B")
    )  # fmt: skip
    assert list(impact(facts, "A::run")) == ["B::run"]
