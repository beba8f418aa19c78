"""The search for planted texts finds them in whatever form they stand."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.planting import Garden, traces

LEAVINGS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: f"before {text} after".encode(),
    "shouted": lambda text: text.upper().encode(),
    "utf-16": lambda text: f"x{text}y".encode("utf-16"),
    "hex": lambda text: f"<{text}>".encode().hex().encode(),
    "backwards": lambda text: text.encode()[::-1],
    "json in json": lambda text: json.dumps(json.dumps({"a": text})).encode(),
    "base64": lambda text: base64.b64encode(f"{text} and more".encode()),
    "base64, later": lambda text: base64.b64encode(f"x{text}".encode()),
    "base64, later still": lambda text: base64.b64encode(f"xy{text}z".encode()),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"??>{text}??>".encode()),
}


@pytest.mark.parametrize("how", LEAVINGS)
@pytest.mark.parametrize("plant", ["plain", "beyond ASCII"])
def test_it_finds_each_form(tmp_path: Path, how: str, plant: str) -> None:
    garden = Garden()
    text = garden.plant("it") + ("é✓" if plant != "plain" else "")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"\0" * 100 + LEAVINGS[how](text) + b"\0" * 100)
    if how == "shouted":
        text = garden.planted["it"]
    assert traces([tmp_path], [text]) != []


def test_it_finds_names(tmp_path: Path) -> None:
    (tmp_path / "aplantedname.log").touch()
    assert traces([tmp_path], ["planted"]) != []


def test_it_finds_nothing_where_nothing_is(tmp_path: Path) -> None:
    garden = Garden()
    (tmp_path / "file").write_text(garden.plant("one"))
    assert traces([tmp_path], [garden.plant("other")]) == []
    assert len(set(garden.planted.values())) == 2
