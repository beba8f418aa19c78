"""How soon a harness has its answers: `make bench-front`.

A bridge is spawned as a harness does it, and the time is taken from that moment: to the answer of
`initialize`, to the list of tools, to the first call's. One after the other, and sixteen at once as
when an editor opens its windows; with services that run, and once with none (what is started then
is reported apart). Held against a server of the official SDK with one empty tool, spawned the same
way: what a harness would wait for without a front. Nothing of a store is opened by any of this, so
one run is with an empty store and one with a large one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.restart import make_store
from benchmarks.stamp import load, stamp
from benchmarks.store.texts import Corpus
from benchmarks.tables import percentile, table
from muniment.kit.paths import Home

_ALONE, _TOGETHER = 20, 16
_BYTES_EACH = 6000
"""What an episode of the benchmark's texts takes in a store, about."""

_PEER = """
import anyio
from mcp.server.mcpserver import MCPServer
server = MCPServer("peer")
@server.tool()
def status() -> str:
    return "fine"
anyio.run(server.run_stdio_async)
"""

_CLIENT = {"name": "bench", "version": "1"}
_INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}


@dataclass(frozen=True)
class Spawned:
    """What one bridge took, in milliseconds since it was spawned, and what it used."""

    first: float
    listed: float
    called: float
    cpu_ms: float
    memory_mib: float


def spawn(command: Sequence[str], environment: dict[str, str], cwd: str, tool: str) -> Spawned:
    """Spawn it, shake hands, list, call, and let it go."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=cwd,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(number: int, method: str, params: dict[str, Any]) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if answer.get("id") != number or "result" not in answer:
            raise SystemExit(f"{method}: {answer}")
        if answer["result"].get("isError"):
            raise SystemExit(f"{method}: {answer}")
        return (time.perf_counter() - began) * 1e3

    first = ask(1, "initialize", _INITIALIZE)
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    listed = ask(2, "tools/list", {})
    called = ask(3, "tools/call", {"name": tool, "arguments": {}})
    memory = _resident_mib(process.pid)
    process.stdin.close()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdout.close()
    cpu = (used.ru_utime + used.ru_stime) * 1e3
    return Spawned(first, listed, called, cpu, memory or used.ru_maxrss / 1024)


def _resident_mib(pid: int) -> float:
    """What the process holds of memory; 0 where this system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def together(make: Callable[[], Spawned], count: int) -> list[Spawned]:
    """So many at once."""
    done: list[Spawned] = []
    threads = [threading.Thread(target=lambda: done.append(make())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(done) != count:
        raise SystemExit(f"{count - len(done)} of {count} bridges failed")
    return done


def _row(name: str, runs: Sequence[Spawned]) -> list[object]:
    def of(pick: Callable[[Spawned], float]) -> tuple[float, float]:
        values = [pick(run) for run in runs]
        return statistics.median(values), percentile(values, 1.0)

    cells: list[object] = [name]
    for pick in (lambda run: run.first, lambda run: run.listed, lambda run: run.called):
        median, worst = of(pick)
        cells.append(f"{median:.0f} ({worst:.0f})")
    cells += [f"{of(lambda run: run.cpu_ms)[0]:.0f}", f"{of(lambda run: run.memory_mib)[0]:.1f}"]
    return cells


def measure(folder: Path, mebibytes: int) -> list[list[object]]:
    """The rows of one home, whose store has about so many MiB."""
    home, keys = Home(folder / "home"), folder / "keys"
    project = folder / "project"
    project.mkdir()
    if mebibytes:
        make_store(home, keys, Corpus(), mebibytes * 1024 * 1024 // _BYTES_EACH, sealed=False)
    environment = {
        "PATH": os.environ["PATH"],
        "MUNIMENT_HOME": str(home.path),
        "MUNIMENT_KEY_FOLDER": str(keys),
    }
    bridge = [str(Path(sys.executable).with_name("muniment-mcp"))]
    size = f"store of {mebibytes} MiB" if mebibytes else "empty store"

    def ours() -> Spawned:
        return spawn(bridge, environment, str(project), "sakur4.status")

    def peer() -> Spawned:
        return spawn([sys.executable, "-c", _PEER], environment, str(project), "status")

    try:
        rows = [_row(f"{size}, nothing runs yet", [ours()])]
        rows.append(_row(f"{size}, {_ALONE} one by one", [ours() for _ in range(_ALONE)]))
        rows.append(_row(f"{size}, {_TOGETHER} at once", together(ours, _TOGETHER)))
        if not mebibytes:
            rows.append(_row(f"SDK server, {_ALONE} one by one", [peer() for _ in range(_ALONE)]))
            rows.append(_row(f"SDK server, {_TOGETHER} at once", together(peer, _TOGETHER)))
    finally:
        down = [sys.executable, "-m", "muniment.cli", "down"]
        subprocess.run(down, env=environment, stdout=subprocess.DEVNULL, check=True)
    return rows


def main() -> None:
    """Measure, and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store-mib", type=int, default=1024, help="size of the large store")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory(prefix="mu-") as place:
        facts = stamp(Path(place))
        for mebibytes in (0, options.store_mib) if options.store_mib else (0,):
            folder = Path(place) / str(mebibytes)
            folder.mkdir()
            rows += measure(folder, mebibytes)
    print(" · ".join(f"{name} {value}" for name, value in facts.items()), "· at the end", load())
    print(
        "\nmilliseconds since the spawn: median (worst); CPU and memory of the bridge's process\n"
    )
    heads = ["", "first answer", "list of tools", "first call", "CPU ms", "MiB"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
