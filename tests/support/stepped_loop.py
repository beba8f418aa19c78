"""A store's loop that runs batches when the test says so, in the test's thread."""

from __future__ import annotations

from muniment.kit.store.jobs import Commit, Follow, Job

__all__ = ["SteppedLoop"]


class SteppedLoop:
    """A loop that runs when it is told to, in the caller's thread."""

    def __init__(self) -> None:
        self._waiting: list[Job] = []
        self._committed: list[Job] = []
        self._commit: Commit | None = None
        self._follow: Follow | None = None

    def start(self, commit: Commit, follow: Follow) -> None:
        """Be ready to run jobs."""
        self._commit, self._follow = commit, follow

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._waiting.append(job)

    def commit_batch(self) -> bool:
        """Commit what waits. False if nothing did."""
        batch, self._waiting = self._waiting, []
        if batch and self._commit is not None:
            self._commit(batch)
            self._committed.extend(batch)
        return bool(batch)

    def follow_batch(self) -> bool:
        """Follow and end what is committed. False if nothing is."""
        done, self._committed = self._committed, []
        if done and self._follow is not None:
            self._follow(done)
        return bool(done)

    def stop(self) -> None:
        """Run what was taken."""
        while self.commit_batch() or self.follow_batch():
            pass
