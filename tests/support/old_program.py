"""The program as it was, packed in tests/data, run beside the present one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muniment.kit.channels import open_channel
from muniment.kit.paths import Home
from tests.waiting import until

__all__ = ["PROGRAMS", "OldProgram", "unpack_program"]

_DATA = Path(__file__).resolve().parents[1] / "data"

PROGRAMS = {version: _DATA / f"program_schema_{version}.tar.xz" for version in (1, 2)}
"""By schema version of its memory a program as `git archive` packed it: its folders
services/muniment/kit, services/muniment/memory and protos/muniment. That of version 1 is the last,
at 313f080; that of version 2 the last without records, at 41b04c9."""

_STOP_SECONDS = 20


@dataclass(frozen=True)
class OldProgram:
    """A version of the program, unpacked."""

    folder: Path

    @contextmanager
    def memory(self, home: Home, key_folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Its memory service, which answers; it is told to stop after the block."""
        paths = [str(self.folder / "protos"), str(self.folder / "services")]
        environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "MUNIMENT_HOME": str(home.path),
            "MUNIMENT_KEY_FOLDER": str(key_folder),
            "PYTHONPATH": os.pathsep.join(paths),
        }
        log = self.folder / "memory.log"
        with (
            log.open("ab") as output,
            subprocess.Popen(
                [sys.executable, "-m", "muniment.memory"],
                env=environment,
                cwd="/",
                stdout=output,
                stderr=output,
            ) as process,
        ):
            try:
                until(lambda: _answers(home, process), f"the old memory answers; see {log}")
                yield process
            finally:
                process.terminate()
                process.wait(_STOP_SECONDS)


def unpack_program(packed: Path, folder: Path) -> OldProgram:
    """Unpack the program into the folder."""
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return OldProgram(folder)


def _answers(home: Home, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the old memory ended"

    async def ask() -> bool:
        async with open_channel(home, "memory") as channel:
            try:
                await asyncio.wait_for(channel.channel_ready(), 1)
            except TimeoutError:
                return False
        return True

    return home.socket("memory").exists() and asyncio.run(ask())
