"""One arrow: calls go down only, and the code's own imports say so."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.unit.house.findings import demand_none
from tests.unit.house.layers import (
    FRONT,
    MAY_IMPORT,
    draw,
    package_of,
    reachable,
    wrong_front_imports,
    wrong_package_imports,
)
from tests.unit.house.source import ROOT, Module, houses_modules, parse

SERVICES = ("memory",)
"""Packages that run as a service of their own and have a domain."""

_TRANSLATORS = ("service", "__main__")
_FOREIGN_TO_DOMAINS = {"grpc", "grpc_health", "grpc_reflection", "grpc_status", "mcp"}


def test_calls_go_down_only() -> None:
    demand_none(wrong_package_imports(houses_modules()))


def test_front_is_standard_library_only() -> None:
    demand_none(wrong_front_imports(houses_modules()))


def test_front_loads_nothing_else_when_it_starts() -> None:
    if FRONT not in {module.name for module in houses_modules()}:
        return
    code = "import sys; before = set(sys.modules); import {}; print(*set(sys.modules) - before)"
    loaded = subprocess.run(
        [sys.executable, "-c", code.format(FRONT)], check=True, capture_output=True, text=True
    ).stdout.split()
    foreign = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names - {"muniment"}
    assert foreign == set()


@pytest.mark.parametrize("service", SERVICES)
def test_domain_modules_know_neither_grpc_nor_mcp(service: str) -> None:
    modules = houses_modules()
    for module in modules:
        name = module.name
        if package_of(name) == service and name.split(".")[-1] not in _TRANSLATORS:
            known = reachable(name, modules)
            demand_none(
                f"{module.path}: knows {target} through {importer}, line {one.line}"
                for target, importers in known.items()
                for importer, one in importers
                if target.split(".")[0] in _FOREIGN_TO_DOMAINS
            )


def test_import_linter_has_the_same_arrow() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in settings["contracts"] if one["type"] == "layers")
    height = {
        package.strip(" ()"): -number
        for number, layer in enumerate(layers)
        for package in layer.split("|")
    }
    assert set(height) == set(MAY_IMPORT)
    for package, targets in MAY_IMPORT.items():
        assert all(height[target] < height[package] for target in targets), package


def _house(**texts: str) -> tuple[Module, ...]:
    return tuple(
        parse(f"services/muniment/{name.replace('__', '/')}.py", text)
        for name, text in texts.items()
    )


def test_wrong_imports_are_found() -> None:
    modules = _house(
        kit__paths="import muniment.memory.pins\n",
        memory__pins="def late():\n    from muniment.workflows import pins\n",
        workflows__pins="from muniment.kit import paths\n",
        attic__things="x = 1\n",
    )
    assert list(wrong_package_imports(modules)) == [
        "services/muniment/kit/paths.py:1: kit may not import muniment.memory.pins",
        "services/muniment/memory/pins.py:2: memory may not import muniment.workflows.pins",
        "services/muniment/attic/things.py:1: the package 'attic' has no place in MAY_IMPORT",
    ]


def test_heavy_front_is_found() -> None:
    modules = _house(
        bridge__front="import json\nfrom muniment.bridge import relay\n",
        bridge__relay="import structlog\nfrom muniment.kit import paths, settings\n",
        kit__paths="def locate():\n    import platformdirs\n    from muniment.kit import ids\n",
        kit__ids="import lmdb\n",
        kit__settings="x = 1\n",
    )
    assert list(wrong_front_imports(modules)) == [
        "services/muniment/bridge/relay.py:1: the front may not import structlog",
        "services/muniment/bridge/relay.py:2: the front may not import muniment.kit.settings",
        "services/muniment/kit/ids.py:1: the front may not import lmdb",
    ]


def test_drawing_shows_every_package_once() -> None:
    modules = _house(
        bridge__front="from muniment.kit import paths\n",
        kit__paths="from muniment.v1 import memory_pb2\n",
    )
    assert draw(modules).splitlines() == [
        "bridge → kit (1)",
        "kit    → v1 (1)",
        "",
        "the front is bridge.front, kit.paths",
    ]
