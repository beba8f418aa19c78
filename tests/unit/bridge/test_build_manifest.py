"""The manifest is what the worker would answer, and is up to date."""

from __future__ import annotations

import json
import runpy
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from muniment.bridge import catalogue, manifest, options
from muniment.bridge.build_manifest import render
from muniment.bridge.eras import MODERN_VERSION
from muniment.bridge.manifest import MANIFEST_PATH, Manifest
from muniment.bridge.tools import operability
from muniment.kit.paths import HOME_VARIABLE


def test_it_is_up_to_date() -> None:
    written = Path(MANIFEST_PATH).read_text(encoding="utf-8")
    assert written == render(), "run `make manifest`"


def test_it_is_the_same_every_time() -> None:
    assert render() == render()


def test_the_module_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "manifest.json"
    monkeypatch.setattr(manifest, "MANIFEST_PATH", str(path))
    monkeypatch.delitem(sys.modules, "muniment.bridge.build_manifest")
    runpy.run_module("muniment.bridge.build_manifest", run_name="__main__")
    assert path.read_text(encoding="utf-8") == render()


def test_the_front_reads_all_of_it() -> None:
    read = Manifest(MANIFEST_PATH)
    assert read.version == version("muniment")
    assert read.server_info["name"] == "muniment"
    assert "tools/call" in read.relayed_methods
    for profile in options.PROFILES:
        assert read.instructions(profile)
        for names in options.NAMES[profile != "context" :]:
            for kind in ("tools", "prompts", "resource_templates"):
                assert read.listed(profile, names, kind)
    for era in ("modern", "legacy"):
        assert read.capabilities(era).keys() == {"tools", "prompts", "resources"}


def test_lists_are_not_announced_to_change() -> None:
    """Whoever is told of changes asks for the lists again, and some without end."""
    for era in ("modern", "legacy"):
        capabilities = json.dumps(Manifest(MANIFEST_PATH).capabilities(era))
        assert capabilities.count('"listChanged": false') == 3


@pytest.mark.parametrize("profile", options.PROFILES)
def test_instructions_are_short(profile: str) -> None:
    """Every session pays for them: some 60 tokens at most."""
    assert len(Manifest(MANIFEST_PATH).instructions(profile)) <= 240


def test_instructions_speak_of_what_is_listed() -> None:
    of_vault = Manifest(MANIFEST_PATH).instructions("vault")
    assert "commit" not in of_vault
    assert "pin" not in of_vault
    assert "search" in of_vault


@pytest.mark.parametrize("kind", ["server/discover", "tools/list", "prompts/list"])
def test_static_lists_may_be_kept_for_minutes_by_anybody(kind: str) -> None:
    assert Manifest(MANIFEST_PATH).cache_hint(kind) == {"ttlMs": 300_000, "cacheScope": "public"}


def test_resource_templates_may_be_kept_for_seconds() -> None:
    hint = Manifest(MANIFEST_PATH).cache_hint("resources/templates/list")
    assert hint == {"ttlMs": 10_000, "cacheScope": "private"}


def test_both_halves_of_the_bridge_know_the_same() -> None:
    """The front imports none of this, for the sake of its start."""
    assert options.PROFILES == catalogue.PROFILES
    assert options.NAMES == catalogue.NAMES
    assert options.HOME_VARIABLE == HOME_VARIABLE
    assert operability.MODERN_VERSION == MODERN_VERSION


def test_nothing_in_it_is_null() -> None:
    assert ": null" not in json.dumps(json.loads(render()))
