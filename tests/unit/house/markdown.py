"""The documents as their tests read them: sections, what is set as code, and command blocks.

Conventions: in a block fenced as `console`, each line that starts with `$ ` is a command, and the
lines after it are what it prints (`...` stands for anything); such blocks are carried out by
tests/integration/test_docs_commands.py. In a block fenced as `sh`, each line is a command that is
checked for its names only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.house.source import ROOT, tracked_paths

__all__ = [
    "Command",
    "Document",
    "Section",
    "documents",
    "read_document",
]

_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,})(?P<language>[\w-]*)\s*$")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?)\s*#*$")
_CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")


@dataclass
class Command:
    """One command of a block."""

    line: int
    text: str
    runnable: bool
    """It stands in a `console` block."""
    output: list[str] = field(default_factory=list)
    """What the document says it prints. Empty: the document does not say."""


@dataclass
class Section:
    """From one heading to the next, of any level."""

    title: str
    code: list[str] = field(default_factory=list)
    """Everything that is set as code: spans, and lines of blocks."""

    def mentions(self, name: str) -> bool:
        """Whether the name is set as code here, alone or within more code."""
        whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-]|\.\w)")
        return any(whole.search(code) for code in self.code)


@dataclass
class Document:
    """One Markdown file."""

    path: str
    sections: list[Section]
    commands: list[Command]


def documents() -> list[Document]:
    """README.md, CONTRIBUTING.md and everything under docs/."""
    return [
        read_document(path, (ROOT / path).read_text())
        for path in tracked_paths()
        if path in ("README.md", "CONTRIBUTING.md")
        or (path.startswith("docs/") and Path(path).suffix == ".md")
    ]


def read_document(path: str, text: str) -> Document:
    """The document that a file with this text is."""
    section = Section("")
    sections, commands = [section], list[Command]()
    block: list[tuple[int, str]] = []
    fence: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if line.strip() == fence["marks"]:
                commands += _commands(fence["language"], block)
                fence, block = None, []
            else:
                content = line.removeprefix(fence["indent"])
                block.append((number, content))
                section.code.append(content)
        elif found := _FENCE.match(line):
            fence = found
        elif heading := _HEADING.match(line):
            section = Section(heading["title"])
            sections.append(section)
            section.code += [span for _, span in _CODE_SPAN.findall(line)]
        else:
            section.code += [span for _, span in _CODE_SPAN.findall(line)]
    if fence:
        raise AssertionError(f"{path}: a block is not closed")
    return Document(path, sections, commands)


def _commands(language: str, block: list[tuple[int, str]]) -> list[Command]:
    commands: list[Command] = []
    continues = False
    for number, line in block:
        starts = line.startswith("$ ") if language == "console" else bool(line.strip())
        if continues:
            commands[-1].text += "\n" + line.removeprefix("> ")
        elif language == "console" and not starts:
            if commands:
                commands[-1].output.append(line)
            continue
        elif starts and language in ("console", "sh") and not line.startswith("#"):
            commands.append(Command(number, line.removeprefix("$ "), language == "console"))
        else:
            continue
        continues = line.endswith("\\")
    return commands
