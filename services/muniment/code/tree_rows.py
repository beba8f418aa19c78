"""The rows of a working tree: what the store keeps of it.

Each says what a file was like when it was read, and how the disk described it then. So any of them
is right by itself, whatever of a run a crash left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from muniment.code.schema import FILES, TREES
from muniment.kit import faults
from muniment.kit.errors import TamperedError
from muniment.kit.store import Reader, Store, Writer
from muniment.v1 import store_pb2

__all__ = ["TreeRows", "forget_trees", "stored_trees", "tree_id"]

_WRITTEN_BY = "code"
_ID_BYTES = 8


def tree_id(root: bytes) -> str:
    """The key of the tree that has this root."""
    return "tree_" + hashlib.blake2b(root, digest_size=_ID_BYTES).hexdigest()


@dataclass(frozen=True)
class TreeRows:
    """The rows of one tree."""

    store: Store
    tree_id: str

    def tree(self) -> store_pb2.StoredCodeTree | None:
        """What is kept of the tree itself; None where nothing is, or nothing to be believed."""
        with self.store.read() as reader:
            return _believed(reader, self.tree_id)

    def files(self) -> Iterator[store_pb2.StoredCodeFile]:
        """The files, but for those whose rows cannot be believed: they are read again."""
        with self.store.read() as reader:
            for _, row in reader.survey(FILES, self.tree_id):
                if not isinstance(row, TamperedError):
                    yield row

    def file(self, path: str) -> store_pb2.StoredCodeFile | None:
        """The row of the file; None where there is none to be believed."""
        with self.store.read() as reader:
            try:
                return reader.get(FILES, self.tree_id, path)
            except TamperedError:
                return None

    def keep(
        self,
        tree: store_pb2.StoredCodeTree,
        files: Iterable[store_pb2.StoredCodeFile] = (),
        removed: Iterable[str] = (),
    ) -> None:
        """Put the rows, and take those of removed paths away; on return it is on disk."""

        def change(writer: Writer) -> None:
            writer.put(TREES, self.tree_id, value=tree)
            for row in files:
                writer.put(FILES, self.tree_id, row.path, value=row)
            for path in removed:
                writer.delete(FILES, self.tree_id, path)

        self.store.write(change, written_by=_WRITTEN_BY).result()
        faults.reach("code.rows_kept")


def stored_trees(store: Store) -> dict[str, store_pb2.StoredCodeTree]:
    """By id the trees of which something is kept."""
    with store.read() as reader:
        return {
            str(key[0]): row
            for key, row in reader.survey(TREES)
            if not isinstance(row, TamperedError)
        }


def forget_trees(store: Store, tree_ids: Collection[str]) -> int:
    """Take all rows of these trees away; how many files there were."""
    removed = 0
    for one in tree_ids:
        with store.read() as reader:
            paths = [str(key[1]) for key, _ in reader.survey(FILES, one) if key]

        def change(writer: Writer, one: str = one, paths: list[str] = paths) -> None:
            for path in paths:
                writer.delete(FILES, one, path)
            writer.delete(TREES, one)

        store.write(change, written_by=_WRITTEN_BY).result()
        removed += len(paths)
    faults.reach("code.trees_forgotten")
    return removed


def _believed(reader: Reader, tree: str) -> store_pb2.StoredCodeTree | None:
    try:
        return reader.get(TREES, tree)
    except TamperedError:
        return None
