"""The dense index's files: whether Chroma may open them.

Chroma reads its graph (HNSW) without a look at it: a file that is cut short or was written half
crashes the process, or answers wrongly. So what Chroma wrote is summed up in a seal, and files that
do not fit theirs are not opened.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from hashlib import blake2b
from pathlib import Path

from muniment.kit.files import private_folder, replace_file

__all__ = ["DenseFiles"]

_BLOCK_BYTES = 1024 * 1024


class DenseFiles:
    """What is in the index's folder."""

    def __init__(self, folder: Path) -> None:
        self._seal = folder / "seal.json"
        self.data = folder / "chroma"
        """Where Chroma writes."""
        self._database = self.data / "chroma.sqlite3"
        self._sealed: dict[str, tuple[int, int]] = {}
        """Size and time of change of each file that the seal is of."""

    def are_sound(self) -> bool:
        """Whether they are as Chroma left them; not, where there are none."""
        try:
            private_folder(self.data)
            seal = json.loads(self._seal.read_bytes())
            return bool(seal == self._digests()) and _is_whole(self._database)
        except (OSError, ValueError):
            return False

    def clear(self) -> None:
        """Delete them. Nobody may have them open."""
        self._seal.unlink(missing_ok=True)
        if self.data.exists():
            shutil.rmtree(self.data)
        private_folder(self.data)
        self._sealed = {}

    def seal(self) -> None:
        """Sum up the graph's files, where they changed; nobody but the owner may read them.

        Chroma writes the graph after every thousand entries, and its database checks itself. Who
        is killed before the seal is renewed finds that it does not fit.
        """
        now = {
            str(path.relative_to(self.data)): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in self._graph()
        }
        if now != self._sealed or not self._seal.exists():
            for path in self.data.rglob("*"):
                path.chmod(0o700 if path.is_dir() else 0o600)
            replace_file(self._seal, json.dumps(self._digests()).encode())
            self._sealed = now

    def _graph(self) -> list[Path]:
        return sorted(path for path in self.data.glob("*/*") if path.is_file())

    def _digests(self) -> dict[str, str]:
        return {str(path.relative_to(self.data)): _digest(path) for path in self._graph()}


def _digest(path: Path) -> str:
    found = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()


def _is_whole(database: Path) -> bool:
    try:
        connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)
        try:
            found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return False
    return found == "ok"
