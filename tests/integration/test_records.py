"""The commands on records against real services."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.cli.main import run
from tests.integration.house import House, Ran, a_house

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One house for all tests here, each with a tenant of its own."""
    with a_house() as house:
        house.must("up")
        yield house


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:100]


class Pipe(io.BytesIO):
    """Standard input that cannot be read twice."""

    def __init__(self, content: bytes, *, terminal: bool) -> None:
        super().__init__(content)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def seekable(self) -> bool:
        return False


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


class Commands:
    """`muniment records` for one tenant."""

    def __init__(self, house: House, tenant: str) -> None:
        self._house = house
        self._tenant = tenant

    def run(self, *words: str, content: bytes = b"", terminal: bool = False) -> Ran:
        """The command, carried out in this process: a new one would take seconds."""
        home = str(self._house.home.path)
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(self._house.project),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(content, terminal=terminal)))
            code = run(["--home", home, "records", *words, "--tenant", self._tenant])
        return Ran(code, _written(out), _written(err).decode())

    def must(self, *words: str, content: bytes = b"") -> object:
        ran = self.run(*words, "--json", content=content)
        assert ran.code == 0, ran.err
        return ran.json

    def out(self, *words: str, content: bytes = b"") -> str:
        ran = self.run(*words, content=content)
        assert ran.code == 0, ran.err
        return ran.out.decode()

    def refused(self, *words: str, content: bytes = b"") -> dict[str, str]:
        ran = self.run(*words, "--json", content=content)
        assert ran.code == 1, ran.out
        error: dict[str, str] = json.loads(ran.err)["error"]
        return error


@pytest.fixture
def records(house: House, tenant: str) -> Commands:
    return Commands(house, tenant)


def only(listed: object) -> dict[str, object]:
    """The one that was listed."""
    assert isinstance(listed, list)
    (one,) = listed
    assert isinstance(one, dict)
    return one


def test_an_entity_comes_goes_and_comes_back(records: Commands) -> None:
    told = records.must("remember", "people", "ann", "drinks tea", "--status", "new")
    assert isinstance(told, dict)
    assert told["created"]
    again = records.must("remember", "people", "ann", '{"tea": 2}')
    assert isinstance(again, dict)
    assert (again["id"], again["created"]) == (told["id"], False)
    found = records.must("recall", "people", "ann")
    assert isinstance(found, dict)
    assert (found["status"], found["body"]) == ("new", {"tea": 2})
    assert "people/ann is in the archive" in records.out("forget", "people", "ann")
    for command in ("recall", "forget"):
        error = records.refused(command, "people", "ann")
        assert "`muniment records list`" in error["fix"]
    listed = records.must("archive", "--category", "people")
    assert isinstance(listed, list)
    (archived,) = listed
    assert archived["entity"] == found
    assert records.must("archive", "--category", "other") == []
    assert records.out("restore", archived["id"]) == "people/ann is back\n"
    assert records.must("recall", "people", "ann") == found
    assert records.must("archive") == []
    assert records.out("archive") == "nothing is in the archive\n"


def test_a_purge_has_to_be_meant(records: Commands) -> None:
    records.must("remember", "people", "ann", "a quixotic secret")
    forgotten = records.must("forget", "people", "ann", "--reason", "over")
    assert isinstance(forgotten, dict)
    archive_id = forgotten["archive_id"]
    error = records.refused("purge", archive_id)
    assert (error["reason"], error["field"]) == ("RECORDS_UNCONFIRMED", "--yes")
    assert "people/ann, forgotten " in error["message"]
    assert records.refused("purge", "none")["reason"] == "RECORD_UNKNOWN"
    assert records.out("purge", archive_id, "--yes") == "people/ann is gone for good\n"
    assert "quixotic" not in records.out("changes", "--json")
    assert "(purged)" in records.out("changes")


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("7",), {"value": "7"}),
        (("[1, 2]",), [1, 2]),
        (('{"a": 1}', "--text"), {"value": '{"a": 1}'}),
        (("-",), {"value": "piped\n"}),
        ((), {"value": "piped\n"}),
    ],
)
def test_bodies_are_what_they_seem(records: Commands, words: tuple[str, ...], body: object) -> None:
    records.must("remember", "c", "n", *words, content=b"piped\n")
    found = records.must("recall", "c", "n")
    assert isinstance(found, dict)
    assert found["body"] == body


def test_what_only_seems_json_is_refused(records: Commands) -> None:
    error = records.refused("remember", "c", "n", '{"a": }')
    assert (error["reason"], error["field"]) == ("BODY_NO_JSON", "body")
    assert "--text" in error["fix"]
    assert records.refused("remember", "c", "n", content=b"\xff")["reason"] == "CONTENT_NOT_UTF8"
    assert records.refused("event", "k", "no object")["reason"] == "BODY_NO_OBJECT"


def test_lists_go_on_and_say_what_is_left(records: Commands) -> None:
    for number in range(3):
        records.must("remember", "c", f"n{number}", "x" * 4000)
    listed = records.must("list", "--limit", "2")
    assert isinstance(listed, list)
    assert [one["name"] for one in listed] == ["n2", "n1"]
    assert listed[0]["truncated"]
    assert listed[0]["body_characters"] == 4012
    assert "1 more; --limit 0 lists all" in records.out("list", "--limit", "2")
    every = records.must("list", "--limit", "0", "--category", "c")
    assert isinstance(every, list)
    assert len(every) == 3
    assert records.out("list", "--category", "d").startswith("no entities of tenant test_lists")


def test_documents_come_and_go(records: Commands, house: House) -> None:
    assert records.out("set-state", "plan", '["a"]') == "state plan set\n"
    assert records.out("set-state", "plan", '["b"]') == "state plan updated\n"
    found = records.must("state", "plan")
    assert isinstance(found, dict)
    assert found["body"] == ["b"]
    assert "plan" in records.out("states")
    (house.project / "guide.md").write_text("# Guide\n")
    records.must("put-reference", "guide", "--file", "guide.md", "--metadata", '{"by": "ann"}')
    shown = records.must("reference", "guide")
    assert isinstance(shown, dict)
    assert (shown["body"], shown["metadata"]) == ("# Guide\n", {"by": "ann"})
    listed = records.must("references")
    assert isinstance(listed, list)
    assert set(listed[0]) == {"key", "updated_at", "metadata"}
    error = records.refused("put-reference", "g", "--file", "none.md")
    assert error["reason"] == "FILE_UNUSABLE"
    for kind in ("state", "reference"):
        key = "plan" if kind == "state" else "guide"
        assert f"{key} is deleted" in records.out(f"delete-{kind}", key)
        assert records.must(f"{kind}s") == []
        assert records.refused(kind, key)["reason"] == "RECORD_UNKNOWN"
        assert records.out(f"{kind}s").startswith("no ")


def test_what_happened_can_be_read(records: Commands) -> None:
    records.must("event", "deploy", '{"to": "staging"}', "--category", "hosts", "--name", "s1")
    records.must("event", "login", "{}")
    every = records.must("journal")
    assert isinstance(every, list)
    assert [one["acted"]["kind"] for one in every] == ["login", "deploy"]
    one = only(records.must("journal", "--category", "hosts", "--name", "s1"))
    assert one["extra"] == {"category": "hosts", "name": "s1"}
    one = only(records.must("journal", "--kind", "login"))
    assert one["acted"] == {"kind": "login", "body": {}}
    assert "there are more" in records.out("journal", "--limit", "1")
    assert "hosts/s1" in records.out("journal")
    assert records.out("journal", "--kind", "none") == "no events\n"


def test_a_record_can_be_read_as_it_was(records: Commands) -> None:
    records.must("remember", "c", "n", "first")
    records.must("remember", "c", "n", "second")
    told = records.must("changes")
    assert isinstance(told, dict)
    assert [one["what"] for one in told["changes"]] == ["created", "changed"]
    assert told["changes"][1]["before"]["body"] == {"value": "first"}
    first = told["changes"][0]["position"]
    then = records.must("as-of", "entity", "n", "--category", "c", "--position", str(first))
    assert isinstance(then, dict)
    assert then["body"] == {"value": "first"}
    assert records.must("as-of", "state", "n", "--position", str(first)) is None
    after = records.must("changes", "--after", str(first), "--limit", "1")
    assert isinstance(after, dict)
    assert len(after["changes"]) == 1
    assert records.out("changes", "--after", str(told["position"])).startswith("nothing changed")
    assert records.run("as-of", "entity", "n", "--position", "1").code == 2
    assert records.refused("changes", "--after", "999999")["reason"]


def test_search_gives_its_verdict(records: Commands) -> None:
    told = records.must("search", "anything")
    assert isinstance(told, dict)
    assert told["verdict"]["recovery"]
    records.must("remember", "animals", "quokka", "lives on Rottnest")
    records.must("set-state", "quokka-state", '["Rottnest"]')
    told = records.must("search", "Rottnest", "--tiers", "entity")
    assert isinstance(told, dict)
    assert [(one["tier"], one["key"]) for one in told["results"]] == [("entity", "quokka")]
    assert told["verdict"]["code"] == "ok"
    shown = records.out("search", "where", "is", "the", "quokka")
    assert shown.startswith("verdict   ok: ")
    assert "entity animals/quokka" in shown
    assert records.run("search", "x", "--tiers", "cellar").code == 2


def test_stats_count(records: Commands, house: House, tenant: str) -> None:
    records.must("remember", "c", "n", "x")
    told = records.must("stats")
    assert isinstance(told, dict)
    assert (told["tenant"], told["entities"], told["generation"]) == (tenant, 1, 1)
    assert told["cap_bytes"] is None
    assert told["used_bytes"] == len('cn{"value":"x"}')
    assert "no cap" in records.out("stats")
    assert tenant in [one["tenant"] for one in house.must("records", "tenants")]


def test_the_tenant_may_come_from_the_environment(house: House) -> None:
    for name in ("KINT_TENANT", "MUNIMENT_TENANT"):
        ran = house.run("records", "stats", "--json", environment={name: f"of-{name}"})
        assert ran.json["tenant"] == f"of-{name}"
    default = house.must("records", "stats")["tenant"]
    assert default == "00000000-0000-0000-0000-000000000001"
    error = json.loads(house.run("records", "stats", "--json", "--tenant", "a\nb").err)["error"]
    assert error["reason"] == "NAME_UNPRINTABLE"


def test_nothing_drives_the_terminal(records: Commands) -> None:
    records.must("remember", "c\u202en", "n\u2066", '{"a": "\\u001b[31m\\u202e\\u009b"}')
    for words in (("list",), ("recall", "c\u202en", "n\u2066"), ("search", "31m", "--json")):
        out = records.out(*words)
        assert not set(out) & {"\x1b", "\u202e", "\u2066", "\x9b"}, words
    assert "c\\u202en" in records.out("list")


# --- Files


def test_files_go_out_and_come_back(records: Commands, house: House) -> None:
    records.must("remember", "c", "n", "mine")
    records.must("event", "k", "{}")
    told = records.must("export", "out.jsonl")
    assert isinstance(told, dict)
    file = house.project / "out.jsonl"
    assert (told["records"], told["counts"]) == (2, {"entity": 1, "event": 1})
    assert told["size_bytes"] == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600
    ran = records.run("export")
    assert ran.out.splitlines()[1:-1] == file.read_bytes().splitlines()[1:-1]
    records.must("remember", "c", "n", "changed")
    records.must("remember", "c", "other", "new")
    again = records.must("import", "out.jsonl")
    assert isinstance(again, dict)
    assert (again["taken"], again["same"], again["kept"]) == ({}, 1, ["entity c/n"])
    assert "kept: entity c/n differs" in records.out("import", "out.jsonl")
    piped = records.must("import", "-", content=file.read_bytes())
    assert isinstance(piped, dict)
    assert piped["same"] == 1
    assert records.refused("import", "out.jsonl", "--replace")["reason"] == "RECORDS_UNCONFIRMED"
    replaced = records.must("import", "out.jsonl", "--replace", "--yes")
    assert isinstance(replaced, dict)
    assert (replaced["taken"], replaced["generation"]) == ({"entity": 1, "journal": 1}, 2)
    listed = records.must("list")
    assert isinstance(listed, list)
    assert [one["body"] for one in listed] == [{"value": "mine"}]


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"\n", 1), (b"y\n", 0)])
def test_on_a_terminal_it_asks(records: Commands, house: House, answer: bytes, code: int) -> None:
    records.must("remember", "c", "n", "x")
    file = f"asked-{code}.jsonl"
    records.must("export", file)
    ran = records.run("import", file, "--replace", content=answer, terminal=True)
    assert ran.code == code
    assert "the 1 records of tenant" in ran.err
    assert ran.err.endswith("go on? [y/N] ")
    assert (b"nothing was changed" in ran.out) == bool(code)
    assert records.run("remember", "c", "n", terminal=True).code == 2


def test_of_a_damaged_file_nothing_is_taken(records: Commands, house: House) -> None:
    records.must("remember", "c", "a", "one")
    records.must("remember", "c", "b", "two")
    lines = records.run("export").out.splitlines(keepends=True)
    target = Commands(house, "damaged")
    for name, content in {
        "cut": b"".join(lines[:2]),
        "changed": b"".join(lines).replace(b"one", b"eno"),
        "letter": b"Dear Sir,\n",
    }.items():
        path = Path(house.project / f"{name}.jsonl")
        path.write_bytes(content)
        error = target.refused("import", str(path))
        assert error["field"].startswith("line ")
        assert error["reason"] == ("NOT_AN_EXPORT" if name == "letter" else "EXPORT_DAMAGED")
    assert target.must("list") == []
    assert target.refused("import", "no.jsonl")["reason"] == "FILE_UNUSABLE"
    assert not list(house.project.glob(".*.tmp"))
