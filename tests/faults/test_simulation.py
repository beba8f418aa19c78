"""Many small worlds, each from a seed: nothing that was answered is ever lost or untrue.

`SEED=… pytest tests/faults/test_simulation.py` runs one of them again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.support.simulation import simulate

ROOT = Path(__file__).resolve().parents[2]
STEPS = 100
SEEDS = (
    [int(os.environ["SEED"])]
    if "SEED" in os.environ
    else list(range(int(os.environ.get("MUNIMENT_TEST_SEEDS", "100"))))
)
AT_ONCE = 25


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one: no world waits for a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """No logs: the trace tells what happened."""
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("first", range(0, len(SEEDS), AT_ONCE))
def test_what_was_answered_holds(folder: Path, first: int) -> None:
    for seed in SEEDS[first : first + AT_ONCE]:
        world = folder / str(seed)
        world.mkdir()
        simulate(seed, STEPS, world)
        shutil.rmtree(world)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_seed_makes_the_same_run_to_the_last_byte(folder: Path, seed: int) -> None:
    digests = set()
    for number in range(2):
        world = folder / str(number)
        world.mkdir()
        digests.add(simulate(seed, 2 * STEPS, world).digest)
    assert len(digests) == 1
    other = subprocess.run(
        [sys.executable, "-m", "tests.faults.test_simulation", str(seed), str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed + 1)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {other.stdout.strip()} == digests


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    place = Path(sys.argv[2]) / "other"
    place.mkdir()
    sys.stdout.write(simulate(int(sys.argv[1]), 2 * STEPS, place).digest)
