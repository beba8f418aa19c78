"""What the tap wrote down, and what it tells of a harness."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Wire", "read_wire", "tapped"]

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


@dataclass(frozen=True)
class Wire:
    """What the fronts of one run were told."""

    client: str
    """How the harness calls itself."""
    revisions: Sequence[str]
    """Of its tool calls."""
    methods: Sequence[str]
    """What it asked, in order, each once."""
    call_meta: Sequence[str]
    """Keys in `_meta` of its tool calls."""


def tapped(command: Path, folder: Path) -> Path:
    """A program that stands in for the command, and records into the folder."""
    folder.mkdir()
    program = folder / "muniment-mcp"
    words = [sys.executable, str(Path(__file__).with_name("tap.py")), str(folder), str(command)]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o700)
    return program


def read_wire(folder: Path) -> Wire:
    """What the recordings in the folder tell."""
    clients, revisions, methods, keys = [], [], [], []
    for path in sorted(folder.glob("*.asked")):
        asked = _messages(path)
        agreed = {
            answer.get("id"): answer["result"]["protocolVersion"]
            for answer in _messages(path.with_suffix(".answered"))
            if "protocolVersion" in answer.get("result", {})
        }
        for message in asked:
            params = message.get("params", {})
            meta = params.get("_meta", {})
            methods.append(message.get("method", "(an answer)"))
            info = params.get("clientInfo") or meta.get("io.modelcontextprotocol/clientInfo")
            if info:
                clients.append(f"{info['name']} {info['version']}")
            if message.get("method") == "tools/call":
                keys += list(meta)
                revisions.append(meta.get(VERSION_KEY) or next(iter(agreed.values())))
    (client,) = set(clients)
    return Wire(client, _each_once(revisions), _each_once(methods), sorted(set(keys)))


def _messages(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def _each_once(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
