"""Reading the manifest, whole or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.bridge.manifest import MANIFEST_PATH, Manifest, ManifestError
from tests.unit.bridge.manifest_fixture import MANIFEST


def test_it_stands_beside_the_code() -> None:
    assert Path(MANIFEST_PATH).parent.name == "bridge"


def test_its_parts(manifest: Path) -> None:
    read = Manifest(str(manifest))
    assert read.version == "9.8.7"
    assert read.instructions("vault") == "Search before you rely on a record."
    assert read.instructions("core") == ""
    assert "tools/call" in read.relayed_methods
    assert [tool["name"] for tool in read.listed("core", "safe", "tools")] == ["memory_recall"]
    assert read.cache_hint("tools/list") == {"ttlMs": 300000, "cacheScope": "public"}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"\xff", b'{"methods": 1, "profiles": {"context": {"safe": 3}}}']
)
def test_damage_is_one_kind_of_error(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "damaged.json"
    path.write_bytes(text)
    read = Manifest(str(path))
    with pytest.raises(ManifestError, match=r"damaged\.json"):
        _ = read.version
    with pytest.raises(ManifestError, match=r"damaged\.json"):
        _ = read.relayed_methods
    with pytest.raises(ManifestError, match=r"damaged\.json"):
        read.listed("context", "safe", "tools")
    with pytest.raises(ManifestError, match=r"damaged\.json"):
        _ = read.server_info


def test_a_list_holds_objects(tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    broken = MANIFEST | {"profiles": {"core": {"safe": {"tools": ["memory_recall"]}}}}
    path.write_text(json.dumps(broken))
    with pytest.raises(ManifestError, match=r"profiles\.core\.safe\.tools"):
        Manifest(str(path)).listed("core", "safe", "tools")
