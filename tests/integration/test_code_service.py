"""The code service as its callers have it: one process, a tree with git, and the contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from muniment.kit.errors import InvalidArgumentError, MunimentError, NotFoundError
from muniment.v1 import code_pb2
from tests.support.code_process import CodeCaller, a_code_home
from tests.support.code_trees import Repository
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CURRENT = code_pb2.FRESHNESS_CURRENT

SHAPES = '''class Shape:
    """Something with an area."""

    def area(self) -> float:
        """How large it is."""
        raise NotImplementedError

    def twice(self) -> float:
        return 2 * self.area()
'''
SQUARE = """from shapes import Shape

class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side ** 2

def unit() -> Square:
    return Square(1.0)
"""
TESTS = "from square import unit\n\ndef test_unit():\n    assert unit().area() == 1\n"


@dataclass(frozen=True)
class Place:
    """A service, and a repository that it indexed."""

    caller: CodeCaller
    repository: Repository


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["plain", "sealed"])
async def service(request: pytest.FixtureRequest) -> AsyncIterator[CodeCaller]:
    with a_code_home() as home:
        if request.param == "sealed":
            home.seal()
        async with home.serving(home.home.path) as caller:
            yield caller


@pytest.fixture
def place(service: CodeCaller, tmp_path: Path) -> Place:
    repository = Repository(tmp_path / "tree")
    repository.write(shapes=SHAPES, square=SQUARE, tests__test_square=TESTS)
    (repository.path / "notes.unheard-of").write_text("words")
    (repository.path / "image.py").write_bytes(b"\0\0")
    context = replace(service.context, project_root=str(repository.path))
    return Place(replace(service, context=context), repository)


async def test_what_is_not_begun_is_said_to_be_so(place: Place) -> None:
    told = await place.caller.describe()
    assert told.state.freshness == code_pb2.FRESHNESS_NOT_INDEXED
    assert "not indexed" in told.state.note
    assert not told.state.HasField("indexed_at")


async def test_an_index_says_what_it_holds(place: Place) -> None:
    result = await place.caller.index()
    assert (result.parsed_files, result.removed_files) == (5, 0)
    assert result.edges > 0
    again = await place.caller.index()
    assert (again.parsed_files, again.unchanged_files) == (0, 5)
    told = await place.caller.describe()
    assert told.state.freshness == CURRENT
    assert told.state.files == 5
    assert told.state.HasField("indexed_at")
    by_language = {one.language: one.files for one in told.languages}
    assert by_language["python"] == 4
    conditions = {one.condition: list(one.examples) for one in told.conditions}
    assert conditions == {
        code_pb2.FILE_CONDITION_NO_GRAMMAR: ["notes.unheard-of"],
        code_pb2.FILE_CONDITION_BINARY: ["image.py"],
    }
    assert told.resolved_edges > 0


async def test_a_symbol_is_told_with_where_and_what_it_is(place: Place) -> None:
    found = await place.caller.symbol("shapes::Shape::area")
    assert found.is_exact
    (one,) = found.definitions
    assert (one.file, one.line, one.language) == ("shapes.py", 4, "python")
    assert one.kind == code_pb2.SYMBOL_KIND_METHOD
    assert one.signature == "def area(self) -> float"
    assert one.doc == "How large it is."
    assert len(one.ast_hash) == 16
    both = await place.caller.symbol("area")
    assert [one.file for one in both.definitions] == ["shapes.py", "square.py"]
    assert not both.is_exact
    none = await place.caller.symbol("aera")
    assert not none.definitions
    assert "shapes::Shape::area" in none.near_names


async def test_a_map_fits_its_budget_and_begins_alike(place: Place) -> None:
    await place.caller.index()
    whole = await place.caller.map(1000)
    assert whole.state.freshness == CURRENT
    assert whole.tokens_used <= 1000
    assert not whole.exact
    assert "class Shape" in whole.map
    assert whole.shown_symbols <= whole.symbols == whole.state.symbols
    small = await place.caller.map(60)
    assert small.tokens_used <= 60
    assert whole.map.startswith(small.map)
    assert len(small.map) < len(whole.map)
    focused = await place.caller.map(1000, "tests", "notes.unheard-of", str(place.repository.path))
    assert len(focused.notes) == 1
    assert "no grammar" in focused.notes[0]


@pytest.mark.parametrize("focus", ["/etc/passwd", "../elsewhere", "no/such/file.py", "a\x00b"])
async def test_a_focus_outside_the_tree_is_refused(place: Place, focus: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await place.caller.map(1000, focus)
    assert caught.value.reason == "FOCUS_PATH_INVALID"


@pytest.mark.parametrize(
    ("budget", "reason"), [(0, "TOKEN_BUDGET_INVALID"), (1, "TOKEN_BUDGET_TOO_SMALL")]
)
async def test_a_budget_for_nothing_is_refused(place: Place, budget: int, reason: str) -> None:
    await place.caller.index()
    with pytest.raises(InvalidArgumentError) as caught:
        await place.caller.map(budget)
    assert caught.value.reason == reason


async def test_impact_names_who_depends(place: Place) -> None:
    found = await place.caller.impact("square::unit")
    wanted = "tests::test_square::test_unit"
    (test,) = [one for one in found.dependents if one.definition.qualified_name == wanted]
    assert (test.depth, test.is_test, test.at_line) == (1, True, 4)


def _stale(found: code_pb2.GetImpactResponse) -> set[str]:
    """Symbols that did not follow a change; a file that only imports is none."""
    return {
        one.definition.qualified_name
        for one in found.dependents
        if one.is_stale and one.definition.signature
    }


async def test_impact_says_who_did_not_follow_a_change(place: Place) -> None:
    await place.caller.index()
    place.repository.write(square=SQUARE.replace("1.0", "2.0"))
    found = await place.caller.impact("square::unit", depth=1)
    assert _stale(found) == {"tests::test_square::test_unit"}
    place.repository.write(tests__test_square=TESTS.replace("== 1", "== 4"))
    found = await place.caller.impact("square::unit", depth=1)
    assert not _stale(found)


async def test_impact_of_nothing_is_not_found(place: Place) -> None:
    with pytest.raises(NotFoundError):
        await place.caller.impact("no::such")
    for depth in (0, 17):
        with pytest.raises(InvalidArgumentError):
            await place.caller.impact("square::unit", depth=depth)
    with pytest.raises(InvalidArgumentError):
        await place.caller.symbol("  ")


async def test_a_watched_tree_follows_by_itself(place: Place) -> None:
    await place.caller.index()
    await place.caller.watched()
    place.repository.write(new="def fresh(): pass\n")
    assert (await place.caller.symbol("fresh")).definitions

    async def is_followed() -> bool:
        return (await place.caller.describe()).state.files == 6

    await eventually(is_followed, "the new file is taken in")


async def test_an_export_is_lines_of_json(place: Place) -> None:
    await place.caller.index()
    lines = (await place.caller.export()).splitlines()
    told = [json.loads(line) for line in lines]
    paths = [one["path"] for one in told]
    assert paths == sorted(paths)
    (square,) = [one for one in told if one["path"] == "square.py"]
    kinds = {(edge["from"], edge["kind"]) for edge in square["edges"]}
    assert ("square::Square", "INHERITS") in kinds
    assert "changed_scan" not in json.dumps(square)


async def test_a_project_is_forgotten(place: Place) -> None:
    await place.caller.index()
    assert await place.caller.forget() >= 5
    assert await place.caller.forget() == 0
    told = await place.caller.describe()
    assert told.state.freshness == code_pb2.FRESHNESS_NOT_INDEXED
    assert not await place.caller.findings()


async def test_calls_without_a_project_or_root_are_refused(place: Place) -> None:
    nowhere = replace(place.caller, context=replace(place.caller.context, project_root=""))
    with pytest.raises(InvalidArgumentError) as caught:
        await nowhere.symbol("x")
    assert caught.value.field == "project_root"
    nobody = replace(place.caller, context=replace(place.caller.context, project_id=""))
    with pytest.raises(InvalidArgumentError):
        await nobody.forget()


async def test_many_callers_are_answered_while_the_tree_changes(place: Place) -> None:
    await place.caller.index()

    async def ask(number: int) -> None:
        name = f"fun{number}"
        place.repository.write(**{f"m{number}": f"def {name}(): pass\n"})
        found = await place.caller.symbol(name)
        if found.state.freshness == CURRENT:
            assert found.definitions, name
        await place.caller.map(500)

    await asyncio.gather(*map(ask, range(20)))


async def test_a_service_that_stops_in_the_middle_goes_on_afterwards(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "tree")
    repository.write(**{f"m{number}": f"def f{number}(): pass\n" for number in range(400)})
    with a_code_home() as home:
        async with home.serving(repository.path) as caller:
            indexing = asyncio.ensure_future(caller.index())
            await asyncio.sleep(0)
        with pytest.raises((MunimentError, asyncio.CancelledError)):
            await indexing
        async with home.serving(repository.path) as caller:
            result = await caller.index()
            assert result.state.files == 400
            assert result.state.freshness == CURRENT
