"""What users meet is written down, and what is written down exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

import pytest

from tests.unit.house import surface
from tests.unit.house.findings import demand_none
from tests.unit.house.markdown import Document, Section, documents, read_document
from tests.unit.house.source import ROOT, tracked_paths

# Options of the root that every command takes.
_EVERYWHERE = {"--help", "-h", "--version"}


def undocumented(names: Iterable[str]) -> Iterator[str]:
    sections = [section for document in documents() for section in document.sections]
    for name in names:
        if not any(section.mentions(name) for section in sections):
            yield f"`{name}` is nowhere in the documents"


@pytest.mark.parametrize(
    "names",
    [
        surface.setting_names,
        surface.environment_variables,
        surface.catalogue_names,
        surface.limit_names,
        surface.error_reasons,
        surface.metric_names,
        surface.rpc_names,
        lambda: (f"make {target}" for target in surface.make_targets()),
    ],
    ids=["settings", "variables", "catalogue", "limits", "reasons", "metrics", "calls", "targets"],
)
def test_everything_is_documented(names: surface.Names) -> None:
    demand_none(undocumented(sorted(set(names()))))


def test_every_command_is_documented_with_its_flags() -> None:
    sections = [section for document in documents() for section in document.sections]
    demand_none(_silent_about(surface.cli_commands().values(), sections))


def _silent_about(commands: Iterable[surface.CliCommand], sections: list[Section]) -> Iterator[str]:
    for command in commands:
        places = [section for section in sections if section.mentions(command.name)]
        if not places:
            yield f"`{command.name}` is nowhere in the documents"
            continue
        for flag in command.flags:
            if not any(place.mentions(flag) for place in places):
                yield f"no section that names `{command.name}` names its {flag}"


def test_every_command_in_the_documents_exists() -> None:
    for document in documents():
        demand_none(_unknown_in(document))


def test_every_command_that_a_message_names_exists() -> None:
    demand_none(
        f"{path}:{line}: {problem}"
        for path, line, command in surface.named_commands()
        for problem in problems(command)
    )


def test_readme_shows_a_session_that_is_carried_out() -> None:
    if surface.cli_commands():
        (readme,) = (document for document in documents() if document.path == "README.md")
        assert any(command.runnable for command in readme.commands)


def _unknown_in(document: Document) -> Iterator[str]:
    for command in document.commands:
        for one in re.split(r"&&|\|\|?|;|\n", command.text):
            for problem in problems(one.strip()):
                yield f"{document.path}:{command.line}: {problem}"


def problems(text: str) -> Iterator[str]:
    """What a command line that starts with `muniment` or `make` names and does not exist."""
    text = re.sub(r"^(\w+=\S+ +)+", "", text)
    words = shlex.split(text, comments=True) if text.startswith(("muniment", "make")) else []
    if not words:
        return
    if words[0] == "make":
        targets = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
        yield from (
            f"make {target}: no such target"
            for target in targets
            if target not in surface.make_targets()
        )
    elif words[0] == "muniment" and surface.cli_commands():
        yield from _problems_of_muniment(words)


def _problems_of_muniment(words: list[str]) -> Iterator[str]:
    known = surface.cli_commands()
    command, flags = known["muniment"], set(known["muniment"].flags)
    for word in words[1:]:
        if word == "--":
            return
        deeper = known.get(f"{command.name} {word}")
        if deeper:
            command, flags = deeper, flags | set(deeper.flags)
        elif word.startswith("--"):
            if word.split("=")[0] not in flags | _EVERYWHERE:
                yield f"{command.name}: no such option as {word}"
        elif command.group and re.fullmatch(r"[a-z-]+", word) and not word.startswith("-"):
            yield f"{command.name}: no such command as {word}"
            return


def test_every_test_in_the_documents_exists() -> None:
    demand_none(
        f"{document.path} names {path}::{test}, which is not there"
        for document in documents()
        for section in document.sections
        for code in section.code
        for path, test in re.findall(r"(tests/[\w/]+\.py)::(\w+)", code)
        if not _has_test(path, test)
    )


def _has_test(path: str, test: str) -> bool:
    text = (ROOT / path).read_text() if path in tracked_paths() else ""
    return bool(re.search(rf"^(async )?def {test}\(", text, re.MULTILINE))


def test_every_complaint_has_its_row() -> None:
    text = (ROOT / "docs/complaints.md").read_text()
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(n) for n in range(1, 56)]


def test_names_are_found_only_where_they_are_code() -> None:
    document = read_document(
        "docs/sample.md", "Pin it.\n\n# `memory.pin`\n\nUse `muniment pin --kind x`.\n"
    )
    first, second = document.sections
    assert not first.mentions("Pin")
    assert second.mentions("memory.pin")
    assert second.mentions("muniment pin")
    assert second.mentions("--kind")
    assert not second.mentions("--kin")
    assert not second.mentions("memory")


def test_blocks_are_read_as_their_language_says() -> None:
    text = (
        "```console\n$ muniment ps\nmemory  ...\n$ echo a \\\n> b\n```\n"
        "```sh\n# first\nmake setup\n```\n"
        "```json\nmake up\n```\n"
    )
    commands = read_document("docs/sample.md", text).commands
    assert [(one.text, one.runnable, one.output) for one in commands] == [
        ("muniment ps", True, ["memory  ..."]),
        ("echo a \\\nb", True, []),
        ("make setup", False, []),
    ]


def test_wrong_commands_are_found() -> None:
    assert list(problems("make setup lint")) == []
    assert list(problems("make coffee")) == ["make coffee: no such target"]
    assert list(problems("makefile coffee")) == []


def test_wrong_subcommands_are_found() -> None:
    assert list(problems("muniment up")) == []
    assert list(problems("MUNIMENT_HOME=/x muniment brew --hot")) == [
        "muniment: no such command as brew"
    ]
    assert list(problems("muniment up --hot")) == ["muniment up: no such option as --hot"]
