"""What counting by the served model and restoring a slot cost and bring: `make bench-slots`.

A llama-server runs beside the slots service, each in a process of its own and on one thread.
Counts: 1,000 texts of all scripts in one call of the service, first unknown to it (cold), then
known (warm), beside one /tokenize request per text on one kept connection; each repetition has
other texts, and medians are shown. Restores: a long prompt evaluated from nothing (cold prefill), a
line more (warm), the slot saved, the server killed and started again, the slot restored, and a
line more. The ratio is the cold prefill over restore and next turn together.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stamp import load, stamp
from benchmarks.tables import table
from tests.support.llama.models import SLIDING, TINY, ModelFiles
from tests.support.llama.packaged import GEMMA3, SMOLLM2
from tests.support.llama.process import LlamaServer
from tests.support.llama.texts import many_texts
from tests.support.llama.turns import Conversation
from tests.support.slots_process import SlotsCaller, SlotsHome, a_slots_home

_TEXTS = 1000
_SLOT_TOKENS = 6144
_PROMPT_LINES = {"tiny": 110, "sliding": 110}
_LONG_PROMPT_LINES = 250
_COUNT_HEADS = ("model", "texts", "kB", "cold ms", "warm ms", "one request per text ms", "ratio")
_RESTORE_HEADS = (
    "model",
    "home",
    "prompt tokens",
    "cold prefill ms",
    "warm turn ms",
    "save ms",
    "MB",
    "restore ms",
    "of that server",
    "next turn ms",
    "evaluated",
    "ratio",
)


@dataclass(frozen=True)
class Model:
    """A model that is measured."""

    name: str
    path: Path
    flags: tuple[str, ...] = ()

    @property
    def prompt_lines(self) -> int:
        """Length of its prompt."""
        return _PROMPT_LINES.get(self.path.stem, _LONG_PROMPT_LINES)


async def count(model: Model, repeats: int, place: Path) -> list[object]:
    """One row of the table of counts."""
    cold, warm, single, sizes = [], [], [], []
    with LlamaServer(model.path, place, *model.flags) as server, a_slots_home() as home:
        async with home.serving(server) as caller:
            await caller.count(["first"])
            for repeat in range(repeats):
                texts = many_texts(_TEXTS, seed=100 + repeat)
                sizes.append(sum(len(text.encode()) for text in texts) / 1e3)
                cold.append(await _took(lambda: caller.count(texts)))  # noqa: B023
                warm.append(await _took(lambda: caller.count(texts)))  # noqa: B023
                began = time.perf_counter()
                expected = [len(server.tokens(text)) for text in texts]
                single.append((time.perf_counter() - began) * 1e3)
                assert list((await caller.count(texts)).counts) == expected
    medians = [statistics.median(one) for one in (sizes, cold, warm, single)]
    return [model.name, _TEXTS, *medians, medians[3] / medians[1]]


async def _took(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1e3


async def restore(model: Model, home: SlotsHome, kind: str, place: Path) -> list[object]:
    """One row of the table of restores."""
    with LlamaServer(model.path, place, *model.flags, slot_tokens=_SLOT_TOKENS) as server:
        async with home.serving(server) as caller:
            return [model.name, kind, *await _restore(server, caller, model.prompt_lines)]


async def _restore(server: LlamaServer, caller: SlotsCaller, lines: int) -> Sequence[object]:
    talk = Conversation(server, first_lines=lines)
    cold, warm = talk.send(), talk.go_on()
    saved = await caller.save()
    server.restart()
    restored = await caller.restore(saved.snapshot.file_path)
    after = talk.go_on()
    return (
        cold.prompt_tokens,
        cold.prompt_ms,
        warm.prompt_ms,
        saved.elapsed_ms,
        saved.snapshot.size_bytes / 1e6,
        restored.elapsed_ms,
        restored.server_ms,
        after.prompt_ms,
        after.evaluated_tokens,
        cold.prompt_ms / (restored.elapsed_ms + after.prompt_ms),
    )


def models(folder: Path) -> list[Model]:
    """The tiny ones, and those that `make test-models` has fetched."""
    files = ModelFiles(folder)
    no_checkpoints = ("--ctx-checkpoints", "0")
    found = [
        Model("tiny", files.of(TINY)),
        Model("tiny, sliding window", files.of(SLIDING)),
        Model("tiny, sliding window, no checkpoints", files.of(SLIDING), no_checkpoints),
    ]
    if SMOLLM2.exists():
        found.append(Model("SmolLM2 135M", SMOLLM2))
    if GEMMA3.exists():
        found.append(Model("Gemma 3 270M, sliding window", GEMMA3))
        found.append(Model("Gemma 3 270M, no checkpoints", GEMMA3, no_checkpoints))
    return found


async def measure(place: Path, repeats: int) -> tuple[list[list[object]], list[list[object]]]:
    """All rows of both tables."""
    counts, restores = [], []
    for number, model in enumerate(models(place)):
        print(f"{model.name}; load {load()}", file=sys.stderr)
        if not model.flags:
            counts.append(await count(model, repeats, place / f"count{number}"))
        for kind in ("plain", "sealed"):
            with a_slots_home() as home:
                if kind == "sealed":
                    home.seal()
                folder = place / f"restore{number}-{kind}"
                restores.append(await restore(model, home, kind, folder))
    return counts, restores


def main() -> None:
    """Measure, and print two tables with the method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of counting, for the median")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mu-") as folder:
        place = Path(folder).resolve()
        counts, restores = asyncio.run(measure(place, options.repeats))
        facts = stamp(place)
    print(__doc__)
    print(f"{', '.join(f'{name} {value}' for name, value in facts.items())}\n")
    print(table(_COUNT_HEADS, counts), end="\n\n")
    print(table(_RESTORE_HEADS, restores))


if __name__ == "__main__":
    main()
