"""The graph: names of places, edges both ways, and what a change resolves anew."""

from __future__ import annotations

import pytest

from muniment.code.graph import CodeGraph, Place
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind
from tests.support.code_facts import Facts

RESOLVED = EdgeCertainty.EDGE_CERTAINTY_RESOLVED
CANDIDATES = EdgeCertainty.EDGE_CERTAINTY_CANDIDATES


def graph_of(**files: Facts) -> CodeGraph:
    """A graph of files whose paths have `__` for `/`, and `_init` for `__init__`."""
    graph = CodeGraph()
    graph.replace({_path(name): ("python", one.made()) for name, one in files.items()})
    return graph


def _path(name: str) -> str:
    return name.replace("__", "/").replace("_init", "__init__") + ".py"


def calls(graph: CodeGraph, path: str) -> list[tuple[str, list[str], str]]:
    """Caller, targets, and `?` where they are candidates only."""
    return [
        (
            graph.qualified_name(Place(path, edge.scope_index)),
            [graph.qualified_name(one) for one in edge.targets],
            "" if edge.certainty == RESOLVED else "?",
        )
        for edge in graph.edges_from(path)
        if edge.kind == EdgeKind.EDGE_KIND_CALLS
    ]


def shop() -> CodeGraph:
    """A package of three files."""
    models = (
        Facts()
        .define("class", "Item")
        .define("method", "price", "Item", type_="Money")
        .define("class", "Money")
        .define("method", "round", "Money")
    )
    package = Facts().imports(".models", "Item").imports(".models", "Money", "Cash")
    sale = (
        Facts()
        .imports("shop", "Item")
        .define("function", "sell")
        .bind("item", "Item()", "sell")
        .call("Item", "sell", line=3)
        .call("item.price", "sell", line=4)
        .call("item.price().round", "sell", line=5)
    )
    return graph_of(shop___init=package, shop__models=models, shop__sale=sale)


def test_names_of_places() -> None:
    graph = shop()
    assert list(graph.paths) == ["shop/__init__.py", "shop/models.py", "shop/sale.py"]
    method = Place("shop/models.py", 1)
    assert graph.qualified_name(method) == "shop::models::Item::price"
    assert graph.qualified_name(Place("shop/models.py", -1)) == "shop::models"


@pytest.mark.parametrize(
    "name",
    [
        "shop::models::Item::price",
        "shop.models.Item.price",
        "shop/models.py::Item.price",
        "shop/models/Item/price",
    ],
)
def test_an_exact_name_is_found(name: str) -> None:
    found = shop().find(name)
    assert found.is_exact
    assert found.places == (Place("shop/models.py", 1),)


@pytest.mark.parametrize("name", ["price", "Item.price", "Item::price", "models.py::Item::price"])
def test_the_end_of_a_name_is_found(name: str) -> None:
    found = shop().find(name)
    assert not found.is_exact
    assert found.places == (Place("shop/models.py", 1),)


@pytest.mark.parametrize("name", ["", "::", "rice", "Price", "tem::price", "x::Item::price"])
def test_half_a_part_or_other_case_is_no_match(name: str) -> None:
    assert shop().find(name).places == ()


@pytest.mark.parametrize("name", ["shop/models.py", "shop::models", "models", "models.py"])
def test_files_have_names_too(name: str) -> None:
    assert shop().find(name).places == (Place("shop/models.py", -1),)


def test_every_definition_of_a_name_is_found() -> None:
    one = Facts().define("function", "run").define("function", "run")
    graph = graph_of(a=one, b=Facts().define("function", "run"))
    assert graph.find("run").places == (Place("a.py", 0), Place("a.py", 1), Place("b.py", 0))
    ids = {graph.symbol_id(place) for place in graph.find("run").places}
    assert len(ids) == 3


def test_ids_outlive_changes_of_other_symbols() -> None:
    graph = shop()
    before = graph.symbol_id(Place("shop/models.py", 2))
    moved = Facts().define("function", "new").define("class", "Money")
    graph.replace({"shop/models.py": ("python", moved.made())})
    assert graph.symbol_id(Place("shop/models.py", 1)) == before
    assert before.startswith("sym_")
    assert len(before) == 20


def test_near_names_help_on() -> None:
    assert "shop::models::Item::price" in shop().near("Item::prise")
    assert shop().near("zzzz") == []


def test_calls_through_re_exports_variables_and_results() -> None:
    assert calls(shop(), "shop/sale.py") == [
        ("shop::sale::sell", ["shop::models::Item"], ""),
        ("shop::sale::sell", ["shop::models::Item::price"], ""),
        ("shop::sale::sell", ["shop::models::Money::round"], ""),
    ]


def test_edges_are_known_from_both_ends() -> None:
    graph = shop()
    users = graph.edges_to(Place("shop/models.py", 0))
    assert [(place, edge.kind, edge.line) for place, edge in users] == [
        (Place("shop/__init__.py", -1), EdgeKind.EDGE_KIND_IMPORTS, 1),
        (Place("shop/sale.py", -1), EdgeKind.EDGE_KIND_IMPORTS, 1),
        (Place("shop/sale.py", 0), EdgeKind.EDGE_KIND_CALLS, 3),
    ]
    for path in graph.paths:
        for edge in graph.edges_from(path):
            for target in edge.targets:
                assert (Place(path, edge.scope_index), edge) in graph.edges_to(target)


def test_arrays_say_what_the_edges_say() -> None:
    graph = shop()
    arrays = graph.arrays()
    assert [str(one.path) for one in arrays.places[:2]] == ["shop/__init__.py", "shop/models.py"]
    listed = {
        (arrays.places[source], arrays.places[target], kind, certainty)
        for source, target, kind, certainty in zip(
            arrays.sources.tolist(),
            arrays.targets.tolist(),
            arrays.kinds.tolist(),
            arrays.certainties.tolist(),
            strict=True,
        )
    }
    assert listed == {
        (Place(path, edge.scope_index), target, edge.kind, edge.certainty)
        for path in graph.paths
        for edge in graph.edges_from(path)
        for target in edge.targets
    }
    assert graph.arrays() is arrays


def test_an_empty_graph() -> None:
    graph = CodeGraph()
    assert len(graph.arrays().places) == 0
    assert len(graph.arrays().targets) == 0
    assert graph.find("x").places == ()
    assert list(graph.paths) == []


def test_a_moved_symbol_keeps_its_users() -> None:
    graph = shop()
    graph.counts()
    moved = (
        Facts()
        .define("function", "first")
        .define("class", "Money")
        .define("method", "round", "Money")
        .define("class", "Item")
        .define("method", "price", "Item", type_="Money")
    )
    graph.replace({"shop/models.py": ("python", moved.made())})
    assert calls(graph, "shop/sale.py")[1:] == [
        ("shop::sale::sell", ["shop::models::Item::price"], ""),
        ("shop::sale::sell", ["shop::models::Money::round"], ""),
    ]


def test_a_removed_file_takes_its_edges_along_and_comes_back() -> None:
    graph = shop()
    assert len(calls(graph, "shop/sale.py")) == 3
    models = graph.facts("shop/models.py")
    graph.replace({"shop/models.py": None})
    assert calls(graph, "shop/sale.py") == []
    graph.replace({"shop/models.py": ("python", models), "never/was.py": None})
    assert len(calls(graph, "shop/sale.py")) == 3


def test_what_a_name_in_another_file_comes_to_follows_a_change_far_away() -> None:
    graph = shop()
    assert len(calls(graph, "shop/sale.py")) == 3
    # `sale` names neither the file nor the class in which it finds `round`.
    models = (
        Facts().imports(".cash", "Coin").define("class", "Item")
        .define("method", "price", "Item", type_="Coin")
    )  # fmt: skip
    cash = Facts().define("class", "Coin").define("method", "round", "Coin")
    graph.replace({"shop/models.py": ("python", models.made())})
    graph.counts()
    graph.replace({"shop/cash.py": ("python", cash.made())})
    assert calls(graph, "shop/sale.py")[2][1] == ["shop::cash::Coin::round"]


def test_counts() -> None:
    found = shop().counts()
    assert (found.resolved, found.candidates, found.unresolved) == (6, 0, 0)


def test_a_call_on_an_unknown_receiver_has_candidates_up_to_a_limit() -> None:
    caller = Facts().define("function", "use").call("thing.close", "use")
    owners = {
        f"m{number}": Facts().define("class", "C").define("method", "close", "C")
        for number in range(8)
    }
    graph = graph_of(a=caller, **owners)
    ((_, targets, mark),) = calls(graph, "a.py")
    assert mark == "?"
    assert len(targets) == 8
    assert len(graph.edges_to(Place("m3.py", 1))) == 1
    ninth = Facts().define("class", "C").define("method", "close", "C").made()
    graph.replace({"n.py": ("python", ninth)})
    assert calls(graph, "a.py") == []
    assert graph.counts().unresolved == 1
