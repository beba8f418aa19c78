"""Showing what services logged: structlog's JSON lines, made readable."""

from __future__ import annotations

import json as json_format
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from muniment.cli.output import Json
from muniment.cli.services import check_name
from muniment.kit.paths import Home
from muniment.kit.printable import printable

__all__ = ["logs"]

_SUPERVISOR = "supervisord"
_POLL_SECONDS = 0.2
_FIRST_KEYS = ("timestamp", "level", "event", "service", "exception")
_LEVEL_STYLES = {"warning": "yellow", "error": "red", "critical": "bold red"}


def logs(
    context: typer.Context,
    service: Annotated[str, typer.Argument(help="A service's name, or `supervisord`.")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many, at most.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they come.")] = False,
    json: Json = False,
) -> None:
    """Show the newest lines of a service's log. With --json, one object a line."""
    home: Home = context.obj
    check_name(home, service, _SUPERVISOR)
    show = _show_json if json else _show_rich if sys.stdout.isatty() else _show_plain
    for line in _read(home.logs / f"{service}.log", lines, follow=follow):
        show(line)


def _read(path: Path, count: int, *, follow: bool) -> Iterator[str]:
    """The last lines of the file; then, to follow, what is added to it or to its successor."""
    position, inode = 0, None
    if path.exists():
        with path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            yield from (_text(line) for line in deque(file, maxlen=count))
            position = file.tell()
    while follow:
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            continue  # Between two files of a rotation.
        with file:
            found = os.fstat(file.fileno())
            if found.st_ino != inode or found.st_size < position:
                position, inode = 0, found.st_ino
            file.seek(position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                position += len(line)
                yield _text(line)


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")


def _parsed(line: str) -> dict[str, object] | None:
    try:
        value = json_format.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _show_json(line: str) -> None:
    print(line if _parsed(line) else json_format.dumps({"event": line}, ensure_ascii=False))


def _show_plain(line: str) -> None:
    entry = _parsed(line)
    if entry is None:
        print(printable(line))
        return
    print(printable(_headline(entry)))
    if "exception" in entry:
        print(printable(str(entry["exception"]), one_line=False))


def _show_rich(line: str) -> None:
    from rich.console import Console
    from rich.text import Text

    entry = _parsed(line)
    console = Console(file=sys.stdout, soft_wrap=True)
    if entry is None:
        console.print(Text(printable(line), style="dim"))
        return
    style = _LEVEL_STYLES.get(str(entry.get("level")), "")
    console.print(Text(printable(_headline(entry)), style=style))
    if "exception" in entry:
        console.print(Text(printable(str(entry["exception"]), one_line=False)))


def _headline(entry: dict[str, object]) -> str:
    rest = " ".join(f"{key}={value}" for key, value in entry.items() if key not in _FIRST_KEYS)
    timestamp, level, event = (str(entry.get(key, "-")) for key in _FIRST_KEYS[:3])
    return f"{timestamp} {level:<8} {event}  {rest}".rstrip()
