"""The map: what is most load-bearing first, never over its budget, less a prefix of more."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.code.graph import CodeGraph
from muniment.code.map_lines import SIGNATURE_LIMIT_CHARACTERS
from muniment.code.outline import Outline, Outliner
from muniment.kit.counting import estimate_tokens
from muniment.kit.errors import InvalidArgumentError
from muniment.v1 import code_pb2, store_pb2

FUNCTION, METHOD = code_pb2.SYMBOL_KIND_FUNCTION, code_pb2.SYMBOL_KIND_METHOD
CLASS, CONSTANT = code_pb2.SYMBOL_KIND_CLASS, code_pb2.SYMBOL_KIND_CONSTANT
FIELD = code_pb2.SYMBOL_KIND_FIELD

HEADER = "3 files, 9 symbols; indexed 12:00"
AMPLE = 100_000


def facts_of(
    symbols: Iterable[tuple[str, code_pb2.SymbolKind.ValueType, int]] = (),
    calls: Sequence[tuple[int, str]] = (),
    *,
    using: Sequence[str] = (),
) -> store_pb2.CodeFacts:
    """A file's facts.

    Args:
        symbols: Name, kind, and parent (one more than its index, 0 at the top) of each.
        calls: Scope (as `parent`) and chain of each call.
        using: Modules of which it imports all.
    """
    facts = store_pb2.CodeFacts()
    for line, (name, kind, parent) in enumerate(symbols, 1):
        facts.symbols.add(
            name=name,
            kind=kind,
            parent=parent,
            line=line,
            end_line=line,
            signature=_signed(name, kind),
        )
    chains = sorted({chain for _, chain in calls})
    facts.mentions.chains.extend(chains)
    for scope, chain in sorted(calls):
        facts.mentions.chain.append(chains.index(chain))
        facts.mentions.kind.append(code_pb2.EDGE_KIND_CALLS)
        facts.mentions.scope.append(scope)
        facts.mentions.line.append(max(scope, 1))
    for module in using:
        facts.imports.add(module=module, is_star=True, line=1)
    return facts


def _signed(name: str, kind: code_pb2.SymbolKind.ValueType) -> str:
    if kind in (code_pb2.SYMBOL_KIND_FUNCTION, code_pb2.SYMBOL_KIND_METHOD):
        return f"def {name}()"
    return f"class {name}" if kind == code_pb2.SYMBOL_KIND_CLASS else name


def count(texts: Sequence[str]) -> list[int]:
    return [estimate_tokens(text) for text in texts]


def graph_of(files: dict[str, store_pb2.CodeFacts], language: str = "python") -> CodeGraph:
    graph = CodeGraph()
    graph.replace({path: (language, facts) for path, facts in files.items()})
    return graph


def drawn(
    files: dict[str, store_pb2.CodeFacts],
    budget: int = AMPLE,
    *,
    focus: Sequence[str] = (),
    names_only: bool = False,
) -> Outline:
    outliner = Outliner(graph_of(files))
    return outliner.outline(budget, count, header=HEADER, focus=focus, names_only=names_only)


def lines_of(outline: Outline) -> list[str]:
    header, *lines = outline.map.splitlines()
    assert header == HEADER
    return lines


def shop() -> dict[str, store_pb2.CodeFacts]:
    """A small program: `total` is called by all, `Order.add` by one."""
    return {
        "shop/money.py": facts_of(
            [("CENTS", CONSTANT, 0), ("total", FUNCTION, 0), ("rounded", FUNCTION, 0)],
            calls=[(2, "rounded")],
        ),
        "shop/orders.py": facts_of(
            [("Order", CLASS, 0), ("add", METHOD, 1), ("sum", METHOD, 1), ("ship", FUNCTION, 0)],
            calls=[(2, "total"), (3, "total"), (4, "total"), (4, "Order")],
            using=["shop.money"],
        ),
        "tests/test_orders.py": facts_of(
            [("test_sum", FUNCTION, 0), ("test_ship", FUNCTION, 0)],
            calls=[(1, "total"), (1, "Order"), (2, "ship")],
            using=["shop.money", "shop.orders"],
        ),
    }


def test_a_file_is_named_once_and_members_stand_below_their_types() -> None:
    lines = lines_of(drawn(shop()))
    assert lines.index(" def total()") < lines.index(" def rounded()")
    assert lines.index(" class Order") < lines.index("  def add()") < lines.index(" def ship()")
    assert set(lines) >= {"shop/orders.py", " def total()", "  def sum()", "tests/test_orders.py"}


def test_tests_and_constants_come_last() -> None:
    lines = lines_of(drawn(shop()))
    assert lines[-4:].index(" def test_sum()") >= 0
    assert lines.index(" CENTS") > lines.index(" def ship()")


def test_names_only_are_what_queries_take() -> None:
    outline = drawn(shop(), names_only=True)
    lines = lines_of(outline)
    assert "shop::orders::Order::add" in lines
    assert len(lines) == len(set(lines)) == outline.shown == 9
    assert lines.index("shop::money::total") < lines.index("tests::test_orders::test_sum")


def test_every_symbol_is_shown_where_there_is_room() -> None:
    outline = drawn(shop())
    assert outline.shown == 9
    assert outline.tokens_used == estimate_tokens(outline.map)


def test_no_file_swallows_the_budget() -> None:
    names = [f"large_{number}" for number in range(40)]
    callers = [(1, f"{name}") for name in names]
    files = {
        "large.py": facts_of([(name, FUNCTION, 0) for name in names]),
        "small.py": facts_of([("small", FUNCTION, 0)], calls=callers, using=["large"]),
        "other.py": facts_of(
            [("other", FUNCTION, 0)], calls=[*callers, (1, "small")], using=["large", "small"]
        ),
    }
    lines = lines_of(drawn(files))
    assert lines.index("small.py") < 15
    assert lines.count("large.py") > 2
    assert {f" def {name}()" for name in names} <= set(lines)


def test_a_type_is_named_again_above_its_later_members() -> None:
    methods = [(f"method_{number}", METHOD, 1) for number in range(9)]
    lines = lines_of(drawn({"a.py": facts_of([("Type", CLASS, 0), *methods])}))
    assert lines.count("a.py") == lines.count(" class Type") == 2
    assert lines[2].startswith("  def method_")


def test_what_is_declared_twice_is_shown_once() -> None:
    files = {"a.py": facts_of([("Type", CLASS, 0), ("size", METHOD, 1), ("size", METHOD, 1)])}
    assert lines_of(drawn(files)) == ["a.py", " class Type", "  def size()"]
    assert lines_of(drawn(files, names_only=True)) == ["a::Type", "a::Type::size"]


@pytest.mark.parametrize("names_only", [False, True])
def test_what_the_focus_reaches_rises(*, names_only: bool) -> None:
    def place(outline: Outline, word: str) -> int:
        return next(at for at, line in enumerate(lines_of(outline)) if word in line)

    files = {
        f"many/caller_{number}.py": facts_of(
            [(f"caller_{number}", FUNCTION, 0)], [(1, "hub")], using=["hub"]
        )
        for number in range(12)
    }
    files["hub.py"] = facts_of([("hub", FUNCTION, 0)])
    files["needle.py"] = facts_of([("needle", FUNCTION, 0)])
    files["tests/test_needle.py"] = facts_of(
        [("test_it", FUNCTION, 0)], [(1, "needle")], using=["needle"]
    )
    plain = drawn(files, names_only=names_only)
    assert place(plain, "hub") < place(plain, "needle")
    focus = ["tests/test_needle.py", "nowhere.py"]
    focused = drawn(files, names_only=names_only, focus=focus)
    assert place(focused, "needle") < place(focused, "hub")
    assert "test_" in lines_of(focused)[0], "in the focus a test is no less than other code"


def test_control_characters_are_spelled_out() -> None:
    facts = facts_of([("evil", FUNCTION, 0)])
    facts.symbols[0].signature = "def evil(a='\x1b[2J\n\u202e')"
    graph = graph_of({"a\n\x07.py": facts})
    outline = Outliner(graph).outline(AMPLE, count, header="one\nline")
    assert outline.map.splitlines() == [
        "one\\x0aline",
        "a\\x0a\\x07.py",
        " def evil(a='\\x1b[2J\\x0a\\u202e')",
    ]
    names = Outliner(graph).outline(AMPLE, count, header="h", names_only=True).map
    assert all(character.isprintable() or character == "\n" for character in names)
    assert names.count("\n") == 2


def test_a_long_signature_is_cut() -> None:
    facts = facts_of([("long", FUNCTION, 0)])
    facts.symbols[0].signature = f"def long({'argument, ' * 30})"
    line = lines_of(drawn({"a.py": facts}))[1]
    assert len(line) == SIGNATURE_LIMIT_CHARACTERS + 1
    assert line.endswith("…")


def test_a_budget_for_no_line_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="token_budget: is too small") as caught:
        drawn(shop(), 3)
    least = int(str(caught.value.fix).split()[2])
    assert lines_of(drawn(shop(), least)) in (["shop/orders.py"], ["shop/money.py"])
    with pytest.raises(InvalidArgumentError):
        drawn(shop(), least - 1)


def test_an_empty_tree_has_its_header_only() -> None:
    assert drawn({}).map == f"{HEADER}\n"
    assert drawn({"a.md": facts_of()}, names_only=True).shown == 0


def test_a_change_of_the_graph_is_in_the_next_map() -> None:
    graph = graph_of(shop())
    outliner = Outliner(graph)
    assert "def new" not in outliner.outline(AMPLE, count, header=HEADER).map
    graph.replace(
        {"shop/new.py": ("python", facts_of([("new", FUNCTION, 0)])), "shop/money.py": None}
    )
    after = outliner.outline(AMPLE, count, header=HEADER).map
    assert "def new" in after
    assert "money" not in after


NAMES = st.sampled_from(
    ["load", "save", "Order", "total", "_private", "__init__", "漢字", "a" * 70, "find_all_by_name"]
)
KINDS = st.sampled_from([FUNCTION, METHOD, CLASS, CONSTANT, FIELD, code_pb2.SYMBOL_KIND_OTHER])
PATHS = st.sampled_from(
    ["a.py", "app/models.py", "app/tests.py", "docs/x.py", "app/migrations/0001_a.py"]
)
MODULES = st.sampled_from(["a", "one.a", "app.models", "two.app.models"])


@st.composite
def facts(draw: st.DrawFn) -> store_pb2.CodeFacts:
    rows = draw(st.lists(st.tuples(NAMES, KINDS, st.integers(0, 40)), max_size=25))
    symbols = [(name, kind, parent % (at + 1)) for at, (name, kind, parent) in enumerate(rows)]
    scopes = st.integers(0, len(symbols))
    calls = draw(st.lists(st.tuples(scopes, NAMES), max_size=25))
    return facts_of(symbols, calls, using=draw(st.lists(MODULES, max_size=2)))


TREES = st.dictionaries(
    st.tuples(st.sampled_from(["", "one/", "two/"]), PATHS).map("".join), facts(), max_size=10
)


@settings(max_examples=60, deadline=None)
@given(
    files=TREES,
    budgets=st.lists(st.integers(1, 1500), min_size=2, max_size=5),
    focus=st.lists(PATHS, max_size=2),
    names_only=st.booleans(),
)
def test_less_is_a_prefix_of_more_and_none_is_over(
    files: dict[str, store_pb2.CodeFacts], budgets: list[int], focus: list[str], *, names_only: bool
) -> None:
    outliner = Outliner(graph_of(files))

    def at(budget: int) -> Outline:
        return outliner.outline(budget, count, header=HEADER, focus=focus, names_only=names_only)

    lines = [*at(AMPLE).map.splitlines(keepends=True)]
    least = estimate_tokens("".join(lines[:2]))
    maps = [(budget, at(budget)) for budget in sorted(budgets) if budget >= least]
    for (_, smaller), (_, larger) in pairwise(maps):
        assert larger.map.startswith(smaller.map)
    for budget, outline in maps:
        shown = outline.map.count("\n")
        assert outline.map == "".join(lines[:shown])
        assert outline.tokens_used == estimate_tokens(outline.map) <= budget
        if shown < len(lines):
            assert estimate_tokens(outline.map + lines[shown]) > budget, "another line would fit"
            # So it is filled, where no line is longer than a twentieth of the budget.
            one = estimate_tokens(lines[shown]) + 1
            assert outline.tokens_used >= 0.95 * budget or budget < 20 * one
    for budget in {budget for budget in budgets if budget < least}:
        with pytest.raises(InvalidArgumentError):
            at(budget)


@settings(max_examples=30, deadline=None)
@given(files=TREES, names_only=st.booleans(), seed=st.integers())
def test_how_the_graph_came_about_does_not_matter(
    files: dict[str, store_pb2.CodeFacts], *, names_only: bool, seed: int
) -> None:
    at_once = Outliner(graph_of(files)).outline(AMPLE, count, header=HEADER, names_only=names_only)
    graph = CodeGraph()
    for path in random.Random(seed).sample(sorted(files), len(files)):
        graph.replace({path: ("python", files[path])})
    by_steps = Outliner(graph).outline(AMPLE, count, header=HEADER, names_only=names_only)
    assert by_steps == at_once


def test_a_usual_budget_is_filled_to_95_percent() -> None:
    files = {}
    for file in range(40):
        names = [f"handle_request_{file}_{number}" for number in range(30)]
        called = [f"handle_request_{(file * 7 + number) % 40}_3" for number in range(30)]
        facts = facts_of([(name, FUNCTION, 0) for name in names], [*enumerate(called, 1)])
        for name in called:
            module = f"package.module_{name.split('_')[2]}"
            facts.imports.add(local=name, module=module, name=name, line=1)
        files[f"package/module_{file}.py"] = facts
    outliner = Outliner(graph_of(files))
    for names_only in (False, True):
        for budget in range(400, 8000, 211):
            outline = outliner.outline(budget, count, header=HEADER, names_only=names_only)
            assert 0.95 * budget <= outline.tokens_used <= budget
