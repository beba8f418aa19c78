"""The trees that are in memory: those that were asked for lately, each with its watch."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import structlog

from muniment.code.graph import CodeGraph
from muniment.code.indexing import Tree
from muniment.code.limits import TREES_IN_MEMORY
from muniment.code.outline import Outliner
from muniment.code.paths import is_folder, raw_root, shown
from muniment.code.readers import Readers
from muniment.code.tree_rows import TreeRows, forget_trees, stored_trees, tree_id
from muniment.code.watching import Watch
from muniment.kit.clock import Clock
from muniment.kit.errors import InvalidArgumentError, MunimentError
from muniment.kit.store import Store
from muniment.v1 import store_pb2

__all__ = ["LiveTree", "Trees"]

_RUNNERS = 4 * TREES_IN_MEMORY

_log = structlog.get_logger()


class LiveTree:
    """A tree in memory, and what watches it."""

    def __init__(self, tree: Tree, clock: Clock, *, watches: bool) -> None:
        self.tree = tree
        self._clock = clock
        self._watches = watches
        self._watch: Watch | None = None
        self._lock = threading.Lock()
        self._outliner: Outliner | None = None

    def outliner(self, graph: CodeGraph) -> Outliner:
        """Who makes maps of the tree's graph."""
        if self._outliner is None:
            self._outliner = Outliner(graph)
        return self._outliner

    def is_current(self) -> bool:
        """Whether a watch has taken in all that it was told of."""
        return self._watch is not None and self._watch.is_current

    def watch(self) -> None:
        """Watch the tree from now on, where trees are watched."""
        with self._lock:
            if not self._watches:
                return
            if self._watch is None or self._watch.is_over:
                self._watch = Watch(self.tree, self._clock)
            self._watch.ask()

    def close(self) -> None:
        """Watch no more."""
        with self._lock:
            self._watches = False
        if self._watch is not None:
            self._watch.close()


class Trees:
    """The trees of one home."""

    def __init__(self, store: Store, readers: Readers, clock: Clock, *, watches: bool) -> None:
        self._store = store
        self._readers = readers
        self._clock = clock
        self._watches = watches
        self._runner = ThreadPoolExecutor(_RUNNERS, thread_name_prefix="index")
        self._lock = threading.Lock()
        self._live: dict[str, LiveTree] = {}
        """By id; the one that was asked for last is the last."""

    def find(self, project_id: str, root: str) -> LiveTree:
        """The tree of that root, read from the store where it is not in memory.

        Raises:
            InvalidArgumentError: There is no such folder.
        """
        raw = _folder(root)
        key = tree_id(raw)
        with self._lock:
            live = self._live.pop(key, None)
            if live is None or live.tree.project_id != project_id:
                if live is not None:
                    live.close()
                live = self._open(key, project_id, raw)
            self._live[key] = live
            idle = [one for one, other in self._live.items() if not other.tree.state().is_running]
            spare = max(0, len(self._live) - TREES_IN_MEMORY)
            gone = [self._live.pop(one) for one in idle[:spare] if one != key]
        for one in gone:
            one.close()
        return live

    def forget_project(self, project_id: str) -> int:
        """Forget all trees of the project, so that no file has a word of them; how many files.

        Raises:
            LimitError: The store cannot be written anew; it has no rows of them all the same.
        """
        with self._lock:
            gone = [key for key, one in self._live.items() if one.tree.project_id == project_id]
            for key in gone:
                live = self._live.pop(key)
                live.tree.forget()
                live.close()
            stored = stored_trees(self._store)
            removed = forget_trees(
                self._store,
                [key for key, row in stored.items() if row.project_id == project_id],
            )
        if removed:
            # The pages of what was deleted would keep it.
            self._store.compact(lambda step, done, total: None)
        return removed

    def forget_gone(self) -> None:
        """Forget the trees whose folders are gone, such as worktrees that were removed."""
        with self._lock, suppress(MunimentError):
            gone = [
                key
                for key, row in stored_trees(self._store).items()
                if not is_folder(raw_root(row.root))
            ]
            if gone:
                _log.info("trees are gone", trees=len(gone))
                forget_trees(self._store, gone)

    def close(self) -> None:
        """End whatever is under way."""
        with self._lock:
            trees, self._live = list(self._live.values()), {}
        for one in trees:
            one.tree.forget()
            one.close()
        self._runner.shutdown(cancel_futures=True)

    def _open(self, key: str, project_id: str, root: bytes) -> LiveTree:
        rows = TreeRows(self._store, key)
        row = rows.tree() or store_pb2.StoredCodeTree(root=shown(root))
        row.project_id = project_id
        tree = Tree(root, row, rows, self._readers, self._runner, self._clock)
        return LiveTree(tree, self._clock, watches=self._watches)


def _folder(root: str) -> bytes:
    raw = raw_root(root)
    if raw.startswith(b"/"):
        real = os.path.realpath(raw)
        if is_folder(real):
            return real
    raise InvalidArgumentError(
        "is no folder" if root else "is missing",
        reason="PROJECT_ROOT_INVALID",
        field="project_root",
        fix="name the working tree's folder by its whole path",
    )
