"""What the commands on records refuse before they ask anybody."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import SystemRandomness
from tests.support.peer_stores import make_peer_store
from tests.unit.cli.conftest import Runner


class Pipe(io.BytesIO):
    """Standard input that cannot be read twice."""

    def seekable(self) -> bool:
        return False


def test_alone_it_prints_its_help(muniment: Runner) -> None:
    ran = muniment("records")
    assert ran.code == 0
    assert "import-from" in ran.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["remember", "people"], "Missing argument 'NAME'"),
        (["search"], "Missing argument 'QUERY...'"),
        (["search", "x", "--limit", "51"], "--limit: must be at most 50"),
        (["search", "x", "--tiers", "attic"], "--tiers: choose from entity, state, "),
        (["search", "x", "--tiers", ""], "--tiers: choose from entity, state, "),
        (["as-of", "state", "k"], "Missing option '--position'"),
        (["as-of", "entity", "k", "--position", "1"], "--category: give the entity's category"),
        (
            ["as-of", "state", "k", "--position", "1", "--category", "c"],
            "--category: only entities have one",
        ),
        (["as-of", "cellar", "k", "--position", "1"], "'cellar' is not one of 'entity', 'state'"),
        (["list", "--limit=-1"], "--limit: must be at least 0"),
        (["import-from"], "Missing argument"),
        (["fetch"], "No such command 'fetch'"),
    ],
)
def test_wrong_usage_is_one_line(muniment: Runner, words: list[str], told: str) -> None:
    ran = muniment("records", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_pipe_is_not_kept_beside_a_sealed_home(
    muniment: Runner, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_KEY_FOLDER", str(tmp_path / "keys"))
    shelf = KeyShelf(home, "file", str(tmp_path / "keys"))
    shelf.keep(HomeKey.make(SystemRandomness(), sealed=True), SystemRandomness())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(b"a secret")))
    ran = muniment("records", "import", "-", "--json")
    assert (ran.code, ran.error["reason"]) == (1, "FILE_NOT_REREADABLE")
    assert not home.runtime.exists() or list(home.runtime.iterdir()) == []


def test_a_pipe_is_kept_in_a_private_file_until_it_is_read(
    muniment: Runner, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUNIMENT_KEY_FOLDER", str(tmp_path / "keys"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(b"Dear Sir,\n")))
    ran = muniment("records", "import", "-", "--json")
    assert (ran.code, ran.error["reason"]) == (1, "NOT_AN_EXPORT")
    assert list(home.runtime.iterdir()) == []


def test_a_store_without_records_starts_nothing(
    muniment: Runner, home: Home, tmp_path: Path
) -> None:
    store = make_peer_store(tmp_path / "memory.db")
    ran = muniment("records", "import-from", str(store), "--json")
    assert (ran.code, ran.error["reason"]) == (1, "PEER_TENANT_UNKNOWN")
    assert [path.name for path in home.runtime.iterdir()] == []
