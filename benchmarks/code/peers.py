"""What else reads code, each in an environment of its own; one that is not to be had says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.code.processes import Usage, run
from benchmarks.code.trees import PLACE, Tree

__all__ = ["PEERS", "Reading"]

_AST_GREP = "ast-grep-cli==0.51.1"
_AIDER = "aider-chat==0.86.2"
_CODEGRAPH = "@colbymchenry/codegraph@1.6.1"

_AIDER_SCRIPT = Path(__file__).with_name("aider_map.py")
_CTAGS_NAMES = {"python": "Python", "typescript": "TypeScript", "rust": "Rust"}


@dataclass(frozen=True)
class Reading:
    """One reading of a tree."""

    who: str
    usage: Usage
    symbols: object
    """How many it found, or what it found instead."""
    edges: object = "-"


def _ctags(tree: Tree, folder: Path) -> list[Reading]:
    program = shutil.which("ctags")
    if program is None:
        raise LookupError("no ctags on the path")
    wanted = f"--languages={_CTAGS_NAMES[tree.language]}"
    used = run([program, "-R", wanted, "-f", "-", "."], folder, _environment())
    return [Reading("universal-ctags", used, used.output.count("\n"))]


def _ast_grep(tree: Tree, folder: Path) -> list[Reading]:
    program = _python_environment("ast-grep", _AST_GREP) / "bin" / "ast-grep"
    command = [str(program), "run", "-p", "$F($$$A)", "-l", tree.language, "--json=stream", "."]
    used = run(command, folder, _environment())
    return [Reading("ast-grep, all calls", used, f"{used.output.count(chr(10))} matches")]


def _codegraph(tree: Tree, folder: Path) -> list[Reading]:
    program = _codegraph_program()
    with tempfile.TemporaryDirectory() as home:
        environment = {**_environment(), "HOME": home, "DO_NOT_TRACK": "1"}
        used = run([str(program), "init", "."], folder, environment)
        told = run([str(program), "status", "--json", "."], folder, environment).output
    status = json.loads(told)
    return [Reading("codegraph 1.6.1", used, status["nodeCount"], status["edgeCount"])]


def _aider(tree: Tree, folder: Path) -> list[Reading]:
    return [Reading(f"aider, a map, {how}", used, "-") for how, used in _aider_maps(tree, folder)]


PEERS: Sequence[Callable[[Tree, Path], list[Reading]]] = (_ctags, _ast_grep, _codegraph, _aider)
"""Each reads the tree that is unpacked in the folder. LookupError, OSError and SubprocessError say
that it is not to be had, or failed."""


def _aider_maps(tree: Tree, folder: Path, tokens: int = 2000) -> list[tuple[str, Usage]]:
    """A map by aider without what it kept of files, and once more with it in a new process."""
    python = _python_environment("aider", _AIDER) / "bin" / "python"
    shutil.rmtree(next(iter(folder.glob(".aider.tags*")), folder / "none"), ignore_errors=True)
    maps = []
    with tempfile.TemporaryDirectory() as home:
        # Without this it asks the network for prices.
        environment = {**_environment(), "HOME": home, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        for how in ("cold", "warm"):
            command = [str(python), str(_AIDER_SCRIPT), str(tokens), tree.endings[0]]
            whole = run(command, folder, environment)
            found = json.loads(whole.output)
            maps.append((how, Usage(found["cpu"], found["wall"], whole.peak_mib)))
    return maps


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}


@cache
def _python_environment(name: str, pin: str) -> Path:
    """An environment with the package, made where it is not yet."""
    folder = PLACE / f"{name}-{pin.rpartition('=')[2]}"
    if not (folder / "installed").exists():
        # aider needs 3.12 or older; the uv of our environment finds one.
        uv = str(Path(sys.executable).with_name("uv"))
        made = [uv, "venv", "--quiet", "--clear", "--python", "<3.13", str(folder)]
        subprocess.run(made, check=True)
        target = ["--python", str(folder / "bin" / "python")]
        subprocess.run([uv, "pip", "install", "--quiet", *target, pin], check=True)
        (folder / "installed").touch()
    return folder


@cache
def _codegraph_program() -> Path:
    folder = PLACE / "codegraph"
    program = folder / "node_modules" / ".bin" / "codegraph"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder)]
        subprocess.run([*command, _CODEGRAPH], check=True)
    return program
