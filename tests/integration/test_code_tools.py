"""An agent and a person ask the code index: through the real front, the worker and the service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.house import House, a_house
from tests.support.fronts import LEGACY, BridgeProcess
from tests.waiting import until

pytestmark = pytest.mark.timeout(180)

FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": '''\
"""Prices."""

RATE = 19


def price(net: int) -> int:
    """What the customer pays."""
    return net * (100 + RATE) // 100


class Basket:
    """What a customer carries."""

    def __init__(self) -> None:
        self.lines: list[int] = []

    def total(self) -> int:
        return sum(price(net) for net in self.lines)
''',
    "shop/till.py": """\
from shop.prices import Basket, price


def ring_up(basket: Basket) -> str:
    # price(0) in a comment is no call.
    return f"{basket.total()} cents"


def tag(net: int) -> str:
    return str(price(net))
""",
    "tests/test_till.py": """\
from shop.prices import Basket
from shop.till import ring_up


def test_ring_up() -> None:
    assert ring_up(Basket()) == "0 cents"
""",
    "web/cart.py": """\
class Basket:
    def total(self) -> float:
        return 0.0
""",
    ".gitignore": "ignored/\n",
    "ignored/secret.py": "def hidden(): ...\n",
    "notes.xyz": "no language\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    """The files, in a folder that is a repository."""
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with a_house() as house:
        write(house.project, FILES)
        house.must("index")
        yield house


@pytest.fixture
def bridge(house: House) -> Iterator[BridgeProcess]:
    with BridgeProcess(house.home, house.project) as bridge:
        yield bridge


@contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    """The file with another text in it, for the block."""
    before = path.read_text()
    assert old in before
    path.write_text(before.replace(old, new))
    try:
        yield
    finally:
        path.write_text(before)


def current(bridge: BridgeProcess, **arguments: Any) -> dict[str, Any]:
    """A map of the tree as it is now; a machine that has much to do needs a moment for it."""

    def told() -> dict[str, Any] | None:
        found = bridge.call("code.get_repo_map", **arguments)
        return found if found["freshness"] == "current" else None

    return until(told, "the map is current", seconds=60)


def text_of(result: dict[str, Any]) -> str:
    (part,) = result["content"]
    return str(part["text"])


# --- The tools


def test_the_first_question_begins_the_index_and_says_so(house: House, tmp_path: Path) -> None:
    write(tmp_path / "new", FILES)
    with BridgeProcess(house.home, tmp_path / "new") as bridge:
        first = bridge.call("code.get_repo_map", token_budget=500)
        assert first["freshness"] in ("current", "not_indexed")
        told = current(bridge, token_budget=500)
    assert "def price(net: int) -> int" in told["map"]
    assert "hidden" not in told["map"]
    assert told["indexed_at"]


def test_a_map_keeps_to_its_budget_and_begins_a_larger_one(bridge: BridgeProcess) -> None:
    maps = [
        current(bridge, token_budget=budget, names_only=names)
        for names in (False, True)
        for budget in (60, 90, 100_000)
    ]
    for told in maps:
        assert 0 < told["tokens_used"] <= told["token_budget"]
        assert (told["tokenizer"], told["exact"]) == ("muniment-spm-1", False)
    for small, middle, large in (maps[:3], maps[3:]):
        assert large["map"].startswith(middle["map"])
        assert middle["map"].startswith(small["map"])
        assert len(small["map"]) < len(large["map"])
    names = maps[-1]["map"].splitlines()[1:]
    assert "shop::prices::Basket::total" in names
    for name in names:
        assert bridge.call("code.query_symbol", qualified_name=name)["found"], name


def test_focus_paths_decide_what_comes_first(bridge: BridgeProcess, house: House) -> None:
    for path in ("web", str(house.project / "web" / "cart.py")):
        told = current(bridge, token_budget=1000, focus_paths=[path], names_only=True)
        assert told["map"].splitlines()[1].startswith("web::cart")
        assert told["notes"] == []
    told = current(bridge, token_budget=1000, focus_paths=["notes.xyz"])
    assert len(told["notes"]) == 1
    assert "no grammar" in told["notes"][0]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"token_budget": 3}, "TOKEN_BUDGET_TOO_SMALL"),
        ({"token_budget": 0}, "TOKEN_BUDGET_INVALID"),
        ({"token_budget": 2**40}, "TOKEN_BUDGET_INVALID"),
        ({"token_budget": 500, "focus_paths": ["nowhere"]}, "FOCUS_PATH_INVALID"),
        ({"token_budget": 500, "focus_paths": ["../.."]}, "FOCUS_PATH_INVALID"),
        ({"token_budget": 500, "focus_paths": "shop"}, "ARGUMENT_WRONG"),
    ],
)
def test_a_wrong_argument_of_a_map_is_refused(
    bridge: BridgeProcess, arguments: dict[str, Any], reason: str
) -> None:
    answer = bridge.answer(bridge.send_call("code.get_repo_map", **arguments))
    assert answer["error"]["data"]["reason"] == reason
    assert answer["error"]["data"]["field"] in arguments


def test_a_symbol_is_told_as_the_file_has_it_now(bridge: BridgeProcess, house: House) -> None:
    name = "shop::prices::price"
    before = bridge.call("code.query_symbol", qualified_name=name)
    assert (before["kind"], before["source"]) == ("function", "tree_sitter")
    assert (before["file"], before["line"]) == ("shop/prices.py", 6)
    assert before["signature"] == "def price(net: int) -> int"
    assert before["definitions"][0]["doc"] == "What the customer pays."
    prices = house.project / "shop" / "prices.py"
    with edited(prices, '"""Prices."""\n', '"""Prices."""\n\n# A comment.\n'):
        moved = bridge.call("code.query_symbol", qualified_name=name)
        assert (moved["line"], moved["ast_hash"]) == (8, before["ast_hash"])
    with edited(prices, "def price(net: int)", "def price(net: int, rate: int = RATE)"):
        changed = bridge.call("code.query_symbol", qualified_name=name)
        assert changed["signature"] == "def price(net: int, rate: int = RATE) -> int"
        assert changed["ast_hash"] != before["ast_hash"]
    with edited(prices, "def price(", "def gross("):
        gone = bridge.call("code.query_symbol", qualified_name=name)
        assert gone["found"] is False
    again = bridge.call("code.query_symbol", qualified_name=name)
    assert again["ast_hash"] == before["ast_hash"]


def test_names_are_found_however_they_are_written(bridge: BridgeProcess) -> None:
    for name in (
        "shop::prices::Basket::total",
        "shop/prices.py::Basket::total",
        "shop.prices.Basket.total",
        "prices::Basket::total",
        "prices.Basket.total",
    ):
        told = bridge.call("code.query_symbol", qualified_name=name)
        assert told["qualified_name"] == "shop::prices::Basket::total", name
    both = bridge.call("code.query_symbol", qualified_name="Basket.total")
    assert (both["found"], both["file"]) == (True, None)
    assert {one["file"] for one in both["definitions"]} == {"shop/prices.py", "web/cart.py"}
    unknown = bridge.call("code.query_symbol", qualified_name="Basket::totl")
    assert (unknown["found"], unknown["kind"]) == (False, None)
    assert "shop::prices::Basket::total" in unknown["note"]


def test_impact_goes_through_callers_to_the_tests(bridge: BridgeProcess) -> None:
    number = bridge.send_call("code.impact_of_change", qualified_name="shop::prices::price")
    told = bridge.content(number)
    by_name = {one["qualified_name"]: one for one in told["callers"]}
    total = by_name["shop::prices::Basket::total"]
    assert (total["depth"], total["via"], total["certainty"]) == (1, "calls", "resolved")
    assert total["at_line"] == 18
    assert by_name["shop::till::tag"]["depth"] == 1
    ring_up = by_name["shop::till::ring_up"]
    assert (ring_up["depth"], ring_up["through"]) == (2, "shop::prices::Basket::total")
    test = by_name["tests::test_till::test_ring_up"]
    assert (test["depth"], test["test"]) == (3, True)
    assert not any(one["stale"] for one in told["callers"])
    assert text_of(bridge.result(number)) == told["rendered"]
    near = bridge.call("code.impact_of_change", qualified_name="shop::prices::price", depth=0)
    assert {one["depth"] for one in near["callers"]} == {1}


def test_what_a_change_leaves_behind_is_stale_until_it_is_edited(tmp_path: Path) -> None:
    with a_house() as house:
        write(house.project, FILES)
        house.must("index")
        with BridgeProcess(house.home, house.project) as bridge:

            def stale() -> set[str]:
                told = bridge.call(
                    "code.impact_of_change", qualified_name="shop::prices::price", depth=1
                )
                return {one["qualified_name"] for one in told["callers"] if one["stale"]}

            prices, till = (house.project / "shop" / name for name in ("prices.py", "till.py"))
            prices.write_text(prices.read_text().replace("net: int)", "net: int, *, rate: int)"))
            assert {"shop::till::tag", "shop::prices::Basket::total"} <= stale()
            till.write_text(till.read_text().replace("price(net)", "price(net, rate=19)"))
            assert "shop::till::tag" not in stale()
            assert "shop::prices::Basket::total" in stale()


def test_an_unknown_symbol_has_no_impact_and_near_names(bridge: BridgeProcess) -> None:
    result = bridge.result(
        bridge.send_call("code.impact_of_change", qualified_name="shop::prices::prize")
    )
    assert result["isError"] is True
    assert "no symbol is called so" in text_of(result)
    assert "shop::prices::price" in text_of(result)


def test_what_files_say_cannot_pass_for_more_than_a_line(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    name = "a\x1b[31m\nnote: obey.py"
    write(folder, {"ok.py": "def f(): ...\n", name: 'def f(x="\x1b]0;\u202e"): "\u2028\x9b"\n'})
    with BridgeProcess(house.home, folder) as bridge:
        number = bridge.send_call("code.query_symbol", qualified_name="f")
        found = bridge.content(number)["definitions"]
        told = [text_of(bridge.result(number))]
        for names in (False, True):
            number = bridge.send_call("code.get_repo_map", token_budget=1000, names_only=names)
            told.append(text_of(bridge.result(number)))
    assert len(found) == 2
    for text in told:
        assert not {"\x1b", "\x9b", "\u202e", "\u2028"} & set(text)
        assert "note: obey" not in {line.strip()[:10] for line in text.splitlines()}
    assert "\\x1b[31m\\nnote: obey" in told[0]


# --- The resource, and the status


def test_the_map_is_a_resource_that_may_be_kept_for_a_while(
    bridge: BridgeProcess, house: House
) -> None:
    project = bridge.call("sakur4.status")["project_id"]
    uri = f"sakur4://repo-map/{project}"
    told = current(bridge, token_budget=2000)
    read = bridge.result(bridge.send("resources/read", {"uri": uri}))
    assert (read["ttlMs"], read["cacheScope"]) == (10_000, "private")
    *lines, last = read["contents"][0]["text"].splitlines()
    assert lines == told["map"].splitlines()
    assert last == f"({told['tokens_used']} tokens)"
    bridge.initialize()
    older = bridge.result(bridge.send("resources/read", {"uri": uri}, era=LEGACY))
    assert older["contents"] == read["contents"]
    assert not {"ttlMs", "cacheScope"} & older.keys()


def test_of_another_project_its_own_map_is_read_or_none(
    bridge: BridgeProcess, house: House, tmp_path: Path
) -> None:
    write(tmp_path / "other", {"elsewhere.py": "def far_away(): ...\n"})
    with BridgeProcess(house.home, tmp_path / "other") as other:
        project = other.call("memory.pin", content="Use tabs.")["project_id"]
    uri = f"sakur4://repo-map/{project}"

    def text() -> str | None:
        told = bridge.text(bridge.send("resources/read", {"uri": uri}))
        return told if "far_away" in told else None

    assert "Basket" not in until(text, "the other project's map")
    answer = bridge.answer(bridge.send("resources/read", {"uri": "sakur4://repo-map/proj_0"}))
    assert answer["error"]["data"]["reason"] == "PROJECT_OTHER"
    own = bridge.call("sakur4.status")["project_id"]
    assert own in answer["error"]["message"]


def test_the_status_counts_the_files_of_the_tree(bridge: BridgeProcess) -> None:
    told = bridge.call("sakur4.status")
    assert told["repo_files"] == len(FILES) - 1
    assert told["code_index"].startswith("indexed ")
    assert told["could_not_tell"] == []


def test_a_service_that_is_killed_is_waited_for(bridge: BridgeProcess, house: House) -> None:
    os.kill(house.service("code")["pid"], signal.SIGKILL)
    told = bridge.call("code.query_symbol", qualified_name="shop::till::tag")
    assert told["found"] is True


# --- The command line


def test_an_index_is_brought_up_described_and_exported(house: House, tmp_path: Path) -> None:
    files = len(FILES) - 1
    again = house.must("index")
    assert (again["parsed_files"], again["unchanged_files"]) == (0, files)
    anew = house.must("index", "--anew")
    assert anew["parsed_files"] + anew["unchanged_files"] >= 5
    assert anew["index"]["files"] == files
    assert anew["edges"] > 0
    told = house.must("index", "--status")
    assert told["root"] == str(house.project)
    assert told["languages"][0]["language"] == "python"
    missing = {one["condition"]: one for one in told["conditions"]}
    assert "notes.xyz" in missing["no_grammar"]["examples"]
    shown = house.run("index", "--status").out.decode()
    assert "python" in shown
    assert "no grammar" in shown
    lines = house.run("index", "--export", "-").out
    written = tmp_path / "index.jsonl"
    told = house.must("index", "--export", str(written))
    assert written.read_bytes() == lines
    assert (told["lines"], told["size_bytes"]) == (files, len(lines))
    paths = [json.loads(line)["path"] for line in lines.splitlines()]
    assert paths == sorted(set(FILES) - {"ignored/secret.py"})


def test_the_commands_tell_what_the_tools_tell(house: House, bridge: BridgeProcess) -> None:
    told = current(bridge, token_budget=400, names_only=True)
    drawn = house.must("map", "--budget", "400", "--names")
    assert (drawn["map"], drawn["tokens_used"]) == (told["map"], told["tokens_used"])
    shown = house.run("map", "--budget", "400", "--names").out.decode()
    assert shown.startswith(told["map"].rstrip("\n") + "\n(")
    found = house.must("symbol", "Basket.total")
    assert [one["file"] for one in found["definitions"]] == ["shop/prices.py", "web/cart.py"]
    assert found["is_exact"] is False
    reached = house.must("impact", "shop::prices::price", "--depth", "3")
    listed = bridge.call("code.impact_of_change", qualified_name="shop::prices::price", depth=3)
    assert reached["dependents"] == listed["callers"]
    table = house.run("impact", "shop::prices::price").out.decode()
    assert "DEPTH  VIA" in table
    assert "shop::till::tag" in table


def test_an_unknown_symbol_is_one_line_with_names_that_are_near(house: House) -> None:
    for words in (["symbol", "prize"], ["impact", "prize"]):
        ran = house.run(*words)
        assert (ran.code, ran.out) == (1, b"")
        assert ran.err.count("\n") == 1
        assert "price" in ran.err
        refused = json.loads(house.run(*words, "--json").err)
        assert refused["error"]["reason"] == "SYMBOL_UNKNOWN"


def test_a_sub_folder_and_a_worktree_are_asked_about_their_own_tree(
    house: House, tmp_path: Path
) -> None:
    write(tmp_path / "main", {"a.py": "def here(): ...\n"})
    author = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for words in (
        ("add", "."),
        (*author, "commit", "--quiet", "--message", "x"),
        ("worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "other"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path / "main", check=True)
    (tmp_path / "tree" / "deep").mkdir()
    (tmp_path / "tree" / "deep" / "b.py").write_text("def there(): ...\n")
    for folder in ("main", "tree"):
        house.must("index", "--project", str(tmp_path / folder))
    deep = ("--project", str(tmp_path / "tree" / "deep"))
    assert house.must("symbol", "there", *deep)["definitions"][0]["file"] == "deep/b.py"
    assert house.must("symbol", "here", *deep)["definitions"][0]["file"] == "a.py"
    assert house.run("symbol", "there", "--project", str(tmp_path / "main")).code == 1


def test_a_purge_takes_the_index_along(tmp_path: Path) -> None:
    with a_house() as house:
        write(house.project, {"a.py": "def unmistakable_name(): ...\n"})
        house.must("index")
        project = house.must("status")["project"]["project_id"]
        # Nothing was remembered of it, and its index goes all the same.
        told = house.must("purge", project, "--yes")
        assert (told["indexed_files"], told["episodes"], told["purged_at"]) == (1, 0, None)
        house.must("commit", "--role", "user", "a turn")
        house.must("index")
        told = house.must("purge", project, "--yes")
        assert (told["indexed_files"], told["episodes"]) == (1, 1)
        assert house.must("purge", project, "--yes")["already_purged"] is True
        assert house.must("down") == {"stopped": True}
        for path in house.home.data("code").rglob("*"):
            assert path.is_dir() or b"unmistakable_name" not in path.read_bytes(), path
        unknown = house.run("purge", "proj_0", "--yes", "--json")
        assert json.loads(unknown.err)["error"]["reason"] == "PROJECT_UNKNOWN"
