"""Watching trees that were asked for: what changes on the disk is read at once.

Only folders that can have files of the tree are watched, so that neither `.git` nor what is ignored
costs anything. A query does not rely on it alone: it compares what its answer is made of.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from concurrent.futures import TimeoutError as PatienceError

import structlog
from watchfiles import Change
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from muniment.code.indexing import ForgottenError, Tree
from muniment.code.limits import WATCH_LIMIT_FOLDERS, WATCH_SECONDS
from muniment.code.paths import shown
from muniment.code.walking import decides_names, list_folders
from muniment.kit.clock import Clock
from muniment.kit.errors import MunimentError

__all__ = ["Watch"]

_STEP_MS = 25
_GATHER_MS = 60
_ROUND_MS = 5_000
_FLOOD_CHANGES = 2_000
"""So many at a time may be some that are left out."""
_IGNORED_LIMIT = 10_000
_AGAIN_SECONDS = 600.0
_POLL_SECONDS = 0.2

_log = structlog.get_logger()


class Watch:
    """Keeps one tree up to the disk, in a thread of its own, until it is not asked for any more."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock
        self._stop = threading.Event()
        self._settled = threading.Event()
        self._asked_at = clock.monotonic()
        self._again_at = 0.0
        self._others: set[bytes] = set()
        """What changed and is none of the tree's."""
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it ended, and another one may begin: not at once where it failed."""
        return not self._thread.is_alive() and self._clock.monotonic() > self._again_at

    @property
    def is_current(self) -> bool:
        """Whether all that the disk told of so far was taken in."""
        return self._settled.is_set() and self._thread.is_alive()

    def ask(self) -> None:
        """Somebody asked for the tree: watch on."""
        self._asked_at = self._clock.monotonic()

    def close(self) -> None:
        """End it; returns when it has ended."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_ending() and self._watch_folders():
                pass
            if not self._is_ending():
                self._again_at = self._clock.monotonic() + _AGAIN_SECONDS
        except ForgottenError:
            pass
        except (OSError, ValueError, WatchfilesRustInternalError, MunimentError) as error:
            # The tree is gone, or the system has no more watches to give.
            self._again_at = self._clock.monotonic() + _AGAIN_SECONDS
            _log.warning("a tree is not watched any more", because=str(error))
        except Exception:
            _log.exception("a tree is not watched any more")
        finally:
            self._settled.clear()

    def _is_ending(self) -> bool:
        idle = self._clock.monotonic() - self._asked_at
        return self._stop.is_set() or idle > WATCH_SECONDS

    def _watch_folders(self) -> bool:
        """Watch until the tree has other folders; False where it is not to be watched."""
        folders = self._folders()
        if not folders or len(folders) > WATCH_LIMIT_FOLDERS:
            return False
        with RustNotify(_as_texts(folders), False, False, 0, False, True) as notify:
            # What changed before the watch began shows now.
            self._look()
            if self._folders() != folders:
                return True
            self._settled.set()
            while not self._is_ending():
                told = notify.watch(_GATHER_MS, _STEP_MS, _ROUND_MS, self._stop)
                if isinstance(told, str):
                    if told == "signal":
                        return False
                    continue
                if self._take(told, set(folders)) and self._folders() != folders:
                    self._settled.clear()
                    return True
        return False

    def _look(self) -> None:
        looking = self._tree.look()
        while True:
            try:
                looking.result(_POLL_SECONDS)
            except PatienceError:
                if self._stop.is_set():
                    raise ForgottenError from None
            else:
                return

    def _folders(self) -> list[bytes]:
        listing = self._tree.listing
        if listing is None:
            self._look()
            listing = self._tree.listing
        return sorted(list_folders(self._tree.root, listing)) if listing is not None else []

    def _take(self, told: Iterable[tuple[int, str]], folders: set[bytes]) -> bool:
        """Take the changes in; whether the tree may have other folders now."""
        start = len(self._tree.root) + 1
        changes = [(kind, os.fsencode(path)) for kind, path in told]
        edited: list[str] = []
        others: set[bytes] = set()
        is_whole = len(changes) > _FLOOD_CHANGES
        for kind, location in changes:
            path = shown(location[start:])
            if decides_names(location):
                self._others.clear()
                is_whole = True
            elif self._tree.knows(path):
                edited.append(path)
            elif kind == Change.deleted:
                is_whole = is_whole or location in folders
            elif location not in self._others and os.path.lexists(location):
                others.add(location)
        if edited:
            self._tree.reread(edited)
        if not is_whole and not others:
            return False
        self._settled.clear()
        self._look()
        if len(self._others) > _IGNORED_LIMIT:
            self._others.clear()
        self._others |= {one for one in others if not self._tree.knows(shown(one[start:]))}
        self._settled.set()
        return True


def _as_texts(folders: Iterable[bytes]) -> list[str]:
    """The folders for the watcher, which takes UTF-8 alone.

    Raises:
        ValueError: One has a name that is none.
    """
    return [folder.decode() for folder in folders]
