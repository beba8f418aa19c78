"""What is generated is committed, and equals what its source generates today."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

from tests.unit.house.findings import demand_none
from tests.unit.house.source import ROOT, houses_modules, tracked_paths

MANIFEST = "mcp_bridge/muniment/bridge/manifest.json"


def test_contracts_python_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run(
        [ROOT / "scripts/generate-protos", tmp_path],
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    fresh = {
        f"protos/{path.relative_to(tmp_path)}": path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    committed = {path for path in tracked_paths() if "_pb2" in path}
    demand_none(
        f"{path}: not what the contracts generate; run `make protos`"
        for path in sorted(fresh.keys() | committed)
        if path not in committed or path not in fresh or (ROOT / path).read_bytes() != fresh[path]
    )


def test_manifest_is_up_to_date() -> None:
    if not any(module.name.startswith("muniment.bridge") for module in houses_modules()):
        return
    render = importlib.import_module("muniment.bridge.build_manifest").render
    assert (ROOT / MANIFEST).read_text() == render(), "run `make manifest`"
