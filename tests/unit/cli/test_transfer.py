"""The commands that take a memory elsewhere, bring it in, and let go of a project."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from muniment.cli import answers
from muniment.cli.output import to_the_second
from muniment.kit.identity import resolve_project
from muniment.kit.paths import Home
from muniment.workflows.clients import Clients
from tests.support.memory_process import MemoryHome
from tests.unit.cli.conftest import Runner


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch, home: Home) -> Iterator[None]:
    """Each command has the service in its own process, which logs nothing."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    home.runtime.mkdir(parents=True, mode=0o700)

    @asynccontextmanager
    async def memory_clients(home: Home) -> AsyncIterator[Clients]:
        async with MemoryHome(home).open_here() as caller:
            yield caller.clients

    monkeypatch.setattr(answers, "memory_clients", memory_clients)
    yield
    structlog.reset_defaults()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project with something in it, in the working folder; its id."""
    root = tmp_path.resolve() / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    return resolve_project(root).project_id


@pytest.fixture
def filled(project: str, home: Home, tmp_path: Path) -> str:
    """The project's id, when it has an episode and a pin, and another project has an episode."""
    other = tmp_path.resolve() / "other"
    other.mkdir()

    async def fill() -> None:
        async with MemoryHome(home).open_here() as caller:
            here = replace(caller.in_project(project).context, project_root=str(Path.cwd()))
            await replace(caller, context=here).commit("the quixotic plan")
            await caller.in_project(project).pin("keep it short")
            there = resolve_project(other).project_id
            await caller.in_project(there).commit("a lighthouse")

    asyncio.run(fill())
    return project


def typed(monkeypatch: pytest.MonkeyPatch, text: str, *, terminal: bool) -> None:
    """Let that stand on standard input."""

    class Input(io.TextIOWrapper):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stdin", Input(io.BytesIO(text.encode())))


def types(text: str) -> list[str]:
    return [json.loads(line)["type"] for line in text.splitlines()]


def test_the_project_of_the_folder_goes_to_standard_output(muniment: Runner, filled: str) -> None:
    ran = muniment("export")
    assert (ran.code, ran.err) == (0, "")
    assert types(ran.out) == ["header", "project", "pin", "episode", "end"]
    told = muniment("export", "--json")
    summary = json.loads(told.err)
    assert (summary["file"], summary["episodes"], summary["pins"]) == ("-", 1, 1)
    assert json.loads(told.out.splitlines()[-1])["sha256"] == summary["sha256"]


def test_all_projects_go_to_a_private_file(muniment: Runner, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text("what stood there before")
    ran = muniment("export", "--all", str(file))
    assert ran.code == 0
    assert ran.out == f"{file} has 2 episodes and 1 pins of 2 projects\n"
    assert types(file.read_text()).count("episode") == 2
    assert file.stat().st_mode & 0o777 == 0o600
    told = muniment("export", "--all", str(file), "--json").json
    assert (told["size_bytes"], told["left_out"]) == (file.stat().st_size, 0)


def test_a_project_is_found_by_its_id_and_by_a_folder(
    muniment: Runner, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    assert "lighthouse" in muniment("export", "--project", str(other)).out
    monkeypatch.chdir(other)
    assert "quixotic" in muniment("export", "--project-id", filled).out


def test_where_there_is_nothing_to_export_no_file_is_left(
    muniment: Runner, project: str, tmp_path: Path
) -> None:
    file = tmp_path / "none.jsonl"
    ran = muniment("export", str(file), "--json")
    assert (ran.code, ran.error["reason"]) == (1, "PROJECT_UNKNOWN")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


@pytest.mark.parametrize("name", ["no/such/folder/x", "."])
def test_a_file_that_cannot_be_written_is_named(muniment: Runner, filled: str, name: str) -> None:
    ran = muniment("export", name, "--json")
    assert (ran.code, ran.error["reason"], ran.error["field"]) == (1, "FILE_UNUSABLE", "file")


def test_an_id_and_all_are_too_much(muniment: Runner) -> None:
    assert muniment("export", "--all", "--project-id", "proj_1").code == 2


def exported(muniment: Runner, file: Path) -> Path:
    assert muniment("export", "--all", str(file)).code == 0
    return file


def test_what_is_here_already_is_passed_over(muniment: Runner, filled: str, tmp_path: Path) -> None:
    file = exported(muniment, tmp_path / "all.jsonl")
    ran = muniment("import", str(file))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "imported 0 episodes and 0 pins; 3 were here already\n"
    told = muniment("import", str(file), "--json").json
    assert told["episodes"] == {"imported": 0, "present": 2}
    assert (told["whole"], told["refused_lines"], told["remarks"]) == (True, 0, [])


def test_standard_input_is_read(
    muniment: Runner, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = exported(muniment, tmp_path / "all.jsonl").read_text()
    assert muniment("purge", filled, "--yes").code == 0
    typed(monkeypatch, lines, terminal=False)
    ran = muniment("import", "-", "--revive")
    assert (ran.code, ran.out) == (
        0,
        "imported 1 episodes and 1 pins; 1 were here already\n",
    )
    typed(monkeypatch, "", terminal=True)
    assert muniment("import", "-").code == 2


def test_what_is_refused_is_named_by_line_and_field(
    muniment: Runner, filled: str, tmp_path: Path
) -> None:
    file = exported(muniment, tmp_path / "all.jsonl")
    file.write_text(file.read_text().replace("quixotic", "forged"))
    ran = muniment("import", str(file))
    assert ran.code == 1
    first, second = ran.err.splitlines()
    assert first.startswith("muniment: warning: line 5: content_bytes: ")
    assert second == "muniment: warning: the file was changed after it was written"
    assert "1 lines were refused" in ran.out
    told = muniment("import", str(file), "--json")
    assert told.code == 1
    assert [(one["line"], one["field"], one["refused"]) for one in told.json["remarks"]] == [
        (5, "content_bytes", True),
        (None, None, False),
    ]


def test_many_remarks_are_counted_and_not_shown(
    muniment: Runner, filled: str, tmp_path: Path
) -> None:
    file = exported(muniment, tmp_path / "all.jsonl")
    file.write_text(file.read_text() + "more\n" * 30)
    ran = muniment("import", str(file))
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 21
    assert ran.err.splitlines()[-1].endswith("there is more to say; --json has it")
    assert "30 lines were refused" in ran.out


def test_a_file_that_was_cut_is_a_failure(muniment: Runner, filled: str, tmp_path: Path) -> None:
    file = exported(muniment, tmp_path / "all.jsonl")
    file.write_bytes(file.read_bytes()[:-100])
    ran = muniment("import", str(file))
    assert ran.code == 1
    assert "the end of the file is missing" in ran.err


@pytest.mark.parametrize("name", ["none.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(muniment: Runner, project: str, name: str) -> None:
    ran = muniment("import", name, "--json")
    assert (ran.code, ran.error["reason"], ran.error["field"]) == (1, "FILE_UNUSABLE", "file")


def test_another_file_is_refused(muniment: Runner, project: str, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir,\n")
    ran = muniment("import", str(file), "--json")
    assert (ran.code, ran.error["reason"]) == (1, "NOT_AN_EXPORT")


# --- Purge


def test_without_a_terminal_a_purge_has_to_be_meant(
    muniment: Runner, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "y\n", terminal=False)
    ran = muniment("purge", filled, "--json")
    assert (ran.code, ran.error["reason"], ran.error["field"]) == (1, "PURGE_UNCONFIRMED", "--yes")
    assert f"1 episodes and 1 pins of {Path.cwd()}" in ran.error["message"]
    assert muniment("export").code == 0


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_on_a_terminal_it_asks(
    muniment: Runner, filled: str, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    typed(monkeypatch, answer, terminal=True)
    ran = muniment("purge", filled)
    assert ran.code == code
    assert "with 1 episodes and 1 pins" in ran.err
    if code:
        assert ran.out == "nothing was purged\n"
    else:
        assert ran.out == f"{filled} is purged: 1 episodes and 1 pins\n"
    assert (muniment("export").code == 0) == bool(code)


def test_a_purged_project_is_told_as_such(
    muniment: Runner, filled: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = home.data("memory") / "store.v1-20260101T000000Z"
    aside.mkdir()
    typed(monkeypatch, "n\n", terminal=True)
    assert str(aside) in muniment("purge", filled).err
    told = muniment("purge", filled, "--yes", "--json").json
    assert (told["project_id"], told["episodes"], told["pins"]) == (filled, 1, 1)
    assert not told["already_purged"]
    assert not aside.exists()
    # There is nothing to lose, so nothing is asked.
    again = muniment("purge", filled, "--json").json
    assert again == told | {"already_purged": True}
    assert "was purged on" in muniment("purge", filled).out
    assert "this project was purged on" in muniment("episodes").err
    (_, gone) = muniment("projects", "--json").json
    assert (gone["project_id"], gone["purged_at"]) == (filled, told["purged_at"])
    assert to_the_second(told["purged_at"]) in muniment("projects").out
    assert muniment("export", "--json").error["reason"] == "PROJECT_PURGED"


def test_a_project_that_nobody_knows_is_an_error(muniment: Runner, project: str) -> None:
    ran = muniment("purge", "proj_none", "--json")
    assert (ran.code, ran.error["reason"]) == (1, "PROJECT_UNKNOWN")
