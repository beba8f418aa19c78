"""What users meet, read from the code: commands, settings, tools, limits, errors and so on."""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.unit.house.source import ROOT, houses_modules

__all__ = [
    "CliCommand",
    "Names",
    "catalogue_names",
    "cli_commands",
    "environment_variables",
    "error_reasons",
    "limit_names",
    "make_targets",
    "metric_names",
    "named_commands",
    "rpc_names",
    "setting_names",
]

Names = Callable[[], Iterable[str]]

_METRICS = ("Counter", "Gauge", "Histogram", "Summary", "Info")
_CATALOGUE_LISTS = ("tools", "prompts", "resources", "resource_templates", "resourceTemplates")


@dataclass(frozen=True)
class CliCommand:
    """One command of the command line, groups and the root included."""

    words: tuple[str, ...]
    """`("muniment", "config", "show")`."""
    flags: tuple[str, ...]
    """Each option's longest spelling, and the spelling that turns it off."""
    group: bool

    @property
    def name(self) -> str:
        return " ".join(self.words)


@cache
def cli_commands() -> Mapping[str, CliCommand]:
    """The commands by name; empty before the command line exists."""
    if not _exists("muniment.cli.main"):
        return {}
    typer = importlib.import_module("typer.main")
    root = typer.get_command(importlib.import_module("muniment.cli.main").app)
    return {command.name: command for command in _walk_commands(root, ("muniment",))}


def _walk_commands(command: Any, words: tuple[str, ...]) -> Iterator[CliCommand]:
    if command.hidden:
        return
    options = (one for one in command.params if one.param_type_name == "option")
    spellings = (
        spelled for one in options if not one.hidden for spelled in (one.opts, one.secondary_opts)
    )
    flags = tuple(max(spelled, key=len) for spelled in spellings if spelled)
    parts: Mapping[str, Any] = getattr(command, "commands", {})
    yield CliCommand(words, tuple(flag for flag in flags if flag != "--help"), bool(parts))
    for name, part in parts.items():
        yield from _walk_commands(part, (*words, name))


def setting_names() -> list[str]:
    """The host's settings."""
    if not _exists("muniment.kit.settings"):
        return []
    return sorted(importlib.import_module("muniment.kit.settings").Settings.model_fields)


def catalogue_names() -> list[str]:
    """Names and addresses of every tool, prompt and resource that the bridge offers.

    The safe spelling of a listed name (`memory_pin` beside `memory.pin`) is left out.
    """
    manifest = ROOT / "mcp_bridge/muniment/bridge/manifest.json"
    if not manifest.exists():
        return []
    names = set(_listed_names(json.loads(manifest.read_text())))
    safe = {spelled for name in names if (spelled := re.sub(r"\W", "_", name)) != name}
    return sorted(names - safe)


def _listed_names(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key in _CATALOGUE_LISTS and isinstance(value, list):
                for item in (one for one in value if isinstance(one, dict)):
                    yield item.get("uriTemplate") or item.get("uri") or item["name"]
            else:
                yield from _listed_names(value)
    elif isinstance(part, list):
        for value in part:
            yield from _listed_names(value)


def limit_names() -> list[str]:
    """The constants of every `limits` module, and public ones elsewhere that are called a limit."""
    names = set()
    for module in houses_modules():
        all_count = module.name.split(".")[-1] == "limits"
        constants = (
            node.id
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and re.fullmatch(r"[A-Z][A-Z0-9_]+", node.id)
        )
        names |= {name for name in constants if all_count or "LIMIT" in name.split("_")}
    return sorted(names)


def error_reasons() -> list[str]:
    """Every reason that an error of the house is made with."""
    return sorted(
        keyword.value.value
        for call in _calls()
        for keyword in call.keywords
        if keyword.arg == "reason"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, str)
    )


def metric_names() -> list[str]:
    """Every metric that a process of the house exports."""
    names = set()
    for call in _calls():
        called = ast.unparse(call.func).split(".")[-1]
        if called.removesuffix("MetricFamily") in _METRICS and call.args:
            name = call.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                names.add(name.value)
    return sorted(names)


def environment_variables() -> list[str]:
    """Every variable of the environment that the house's code names."""
    return sorted(
        {
            text
            for _, _, text in _strings()
            if re.fullmatch(r"(MUNIMENT|SAKUR4|KINT|SIBYL|CLAUDE)_[A-Z0-9_]*[A-Z0-9]", text)
        }
    )


def named_commands() -> list[tuple[str, int, str]]:
    """Path, line and text of each `muniment ...` that a message of the house names."""
    return [
        (path, line, found)
        for path, line, text in _strings()
        for found in re.findall(r"`(muniment(?: [^`]*)?)`", text)
    ]


def rpc_names() -> list[str]:
    """Every call of the contracts."""
    texts = (path.read_text() for path in sorted((ROOT / "protos").rglob("*.proto")))
    return sorted({name for text in texts for name in re.findall(r"^  rpc (\w+)\(", text, re.M)})


def make_targets() -> list[str]:
    """The targets of the Makefile."""
    return re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)


def _exists(name: str) -> bool:
    return any(module.name == name for module in houses_modules())


def _calls() -> Iterator[ast.Call]:
    for module in houses_modules():
        yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))


def _strings() -> Iterator[tuple[str, int, str]]:
    for module in houses_modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield module.path, node.lineno, node.value
