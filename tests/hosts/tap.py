"""Writes down what a harness and the front say, for the one run that looks at the wire.

The process that the harness spawned becomes the front itself, so that signals and the watch over
its parent stay as they are; a child copies both directions and ends with them.
Run as `tap.py FOLDER COMMAND...`.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

_CHUNK_BYTES = 1 << 16


def main() -> None:
    """Put the copier between the harness and the command."""
    folder, *command = sys.argv[1:]
    front_reads, to_front = os.pipe()
    from_front, front_writes = os.pipe()
    front = os.getpid()
    if os.fork() == 0:
        os.close(front_reads)
        os.close(front_writes)
        _copy(Path(folder), front, to_front, from_front)
        os._exit(0)
    os.dup2(front_reads, 0)
    os.dup2(front_writes, 1)
    os.execv(command[0], command)


def _copy(folder: Path, front: int, to_front: int, from_front: int) -> None:
    """Copy until the front has nothing more to say."""
    with (
        (folder / f"{front}.asked").open("wb") as asked,
        (folder / f"{front}.answered").open("wb") as answered,
    ):
        ways = {0: (to_front, asked), from_front: (1, answered)}
        while from_front in ways:
            ready, _, _ = select.select(list(ways), [], [])
            for source in ready:
                target, record = ways[source]
                chunk = os.read(source, _CHUNK_BYTES)
                record.write(chunk)
                record.flush()
                if not chunk:
                    os.close(target)
                    del ways[source]
                while chunk:
                    chunk = chunk[os.write(target, chunk) :]


if __name__ == "__main__":
    main()
