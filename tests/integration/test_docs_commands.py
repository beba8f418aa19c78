"""The `console` blocks of the documents do what the documents say.

Each document is one session: its commands run in order, in one shell, in a new repository and a
home of its own. A command that fails, or prints something else, fails the test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.house.markdown import Command, Document, documents, read_document

_END = "\x1e"

# Marks the end of a command's output in the shell's own, with its exit code and line.
_AFTER = "printf '\\036%s\\036' $?"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables of a shell with a home of its own, which is down again after the test."""
    variables = {
        "HOME": str(tmp_path),
        "MUNIMENT_HOME": str(tmp_path / "home"),
        "MUNIMENT_BACKEND": "none",
        "MUNIMENT_KEY_FOLDER": str(tmp_path / "keys"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
    }
    yield variables
    muniment = Path(sys.executable).with_name("muniment")
    subprocess.run([muniment, "down"], env=variables, capture_output=True, check=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", documents(), ids=lambda document: document.path)
def test_document(document: Document, shell: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "--quiet", project], check=True)
    check(document, shell, project)


def check(document: Document, variables: dict[str, str], folder: Path) -> None:
    """Carry out the document's runnable commands.

    Raises:
        AssertionError: One failed, or printed something else.
    """
    commands = [command for command in document.commands if command.runnable]
    script = "\n".join(f"{command.text}\n{_AFTER}" for command in commands)
    ran = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    *parts, rest = ran.stdout.split(_END)
    assert len(parts) == 2 * len(commands), f"{document.path}: the shell ended early: {rest}"
    for command, printed, code in zip(commands, parts[::2], parts[1::2], strict=True):
        where = f"{document.path}:{command.line}: {command.text}"
        assert code == "0", f"{where}\nfailed with {code}:\n{printed}"
        assert _says(command, printed), f"{where}\nprinted:\n{printed}"


def _says(command: Command, printed: str) -> bool:
    if not command.output:
        return True
    lines = (re.escape(line).replace(r"\.\.\.", ".*") for line in command.output)
    expected = re.sub(r"(^|\n)\.\*(?=\n|$)", r"\1(.|\n)*?", "\n".join(lines))
    actual = "\n".join(line.rstrip() for line in printed.splitlines())
    return re.fullmatch(expected, actual) is not None


def _sample(*lines: str) -> Document:
    return read_document("docs/sample.md", "\n".join(["```console", *lines, "```"]))


def test_commands_share_one_shell(shell: dict[str, str], tmp_path: Path) -> None:
    sample = _sample("$ cd / && x=1", "$ pwd; echo $x; echo tail", "/", "...", "t...l")
    check(sample, shell, tmp_path)


@pytest.mark.parametrize(
    "lines",
    [("$ false",), ("$ echo a", "b"), ("$ echo a; echo b", "a"), ("$ exit 0", "$ true")],
)
def test_what_is_not_so_is_found(
    lines: tuple[str, ...], shell: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"docs/sample\.md"):
        check(_sample(*lines), shell, tmp_path)
