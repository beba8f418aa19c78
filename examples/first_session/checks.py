"""What has to hold at the end of the session. Every check looks at answers; none assumes one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.first_session.answers import Dependent, Hit

__all__ = [
    "TOP_HITS",
    "Acknowledged",
    "Check",
    "Correction",
    "came_back",
    "correction_surfaced",
    "exactly_once",
    "pins_survived",
    "rank_of",
    "reached",
]

TOP_HITS = 3
"""An expectation has to be met by one of so many first hits."""


@dataclass(frozen=True)
class Check:
    """A claim and whether it held."""

    claim: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Acknowledged:
    """A turn that was sent, and the id under which it was acknowledged."""

    step: int
    episode_id: str
    content: str

    @property
    def sha256(self) -> str:
        """Hex digest of what was sent."""
        return hashlib.sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True)
class Correction:
    """A turn that corrects an earlier one."""

    step: int
    old_id: str
    new_id: str
    new_content: str


def rank_of(expect: str, hits: Sequence[Hit]) -> int | None:
    """Return which of the first hits, from 1, has this in its text."""
    for rank, hit in enumerate(hits[:TOP_HITS], 1):
        if expect in hit.text:
            return rank
    return None


def reached(symbol: str, expect: Sequence[str], found: Sequence[Dependent]) -> Check:
    """Look for every file that a change of the symbol has to reach, and for a test."""
    claim = f"What a change of {symbol} would reach is known"
    files = {one.file for one in found}
    missing = [file for file in expect if file not in files]
    tests = sum(one.is_test for one in found)
    if missing:
        return Check(claim, False, f"not among it: {', '.join(missing)}")
    return Check(claim, tests > 0, f"{len(found)} in {len(files)} files, {tests} of them tests")


def exactly_once(turns: Sequence[Acknowledged], stored: Sequence[Mapping[str, Any]]) -> Check:
    """Compare what was acknowledged with the project's list of episodes."""
    times = Counter(row.get("episode_id") for row in stored)
    digests = {row.get("episode_id"): row.get("content_sha256") for row in stored}
    missing = [turn.step for turn in turns if times[turn.episode_id] == 0]
    altered = [
        turn.step
        for turn in turns
        if times[turn.episode_id] and digests[turn.episode_id] != turn.sha256
    ]
    # A turn that was recorded twice has a second id, so it shows as a row that nobody was told of.
    extra = len(stored) - (len(turns) - len(missing))
    shared = len(turns) - len({turn.episode_id for turn in turns})
    faults = [
        *([f"missing: steps {_listed(missing)}"] if missing else []),
        *([f"other bytes: steps {_listed(altered)}"] if altered else []),
        *([f"{extra} rows too many"] if extra > 0 else []),
        *([f"{shared} ids given twice"] if shared else []),
    ]
    detail = "; ".join(faults) or f"{len(turns)} sent, {len(stored)} stored, every SHA-256 equal"
    return Check(
        "Every acknowledged turn is stored exactly once", bool(turns) and not faults, detail
    )


def came_back(
    service: str, killed_pid: int, now: Mapping[str, Any] | None, milliseconds: float | None
) -> Check:
    """Compare a killed service with its present line of `muniment ps`."""
    claim = f"{service} came back by itself"
    if now is None or not isinstance(now.get("pid"), int):
        return Check(claim, False, f"pid {killed_pid} was killed, and none runs now")
    if now["pid"] == killed_pid:
        return Check(claim, False, f"pid {killed_pid} still runs: it was not killed")
    if milliseconds is None:
        return Check(claim, False, "no call followed the kill")
    return Check(
        claim,
        True,
        f"pid {killed_pid} is now {now['pid']}; the call took {milliseconds:.0f} ms",
    )


def pins_survived(pins: Sequence[str], anchors: str | None) -> Check:
    """Look for every pinned rule, word for word, in the Anchor Set that a new session reads."""
    claim = "Pinned rules reach the new session"
    if anchors is None:
        return Check(claim, False, "the Anchor Set was not read")
    lost = [rule for rule in pins if rule not in anchors]
    detail = f"lost: {lost[0]}" if lost else f"{len(pins)} of {len(pins)}, word for word"
    return Check(claim, bool(pins) and not lost, detail)


def correction_surfaced(
    corrections: Sequence[Correction], answers: Sequence[tuple[int, Sequence[Hit]]]
) -> Check:
    """Look for corrected turns that pass for good in the answers that came after the correction.

    A superseded turn may be found, but only marked and with the correction beside it; and the
    correction itself has to be found at least once.

    Args:
        corrections: What was corrected.
        answers: The step of each question, and its hits.
    """
    claim = "A corrected turn never passes for the truth"
    marked = 0
    for correction in corrections:
        hits = [hit for step, found in answers if step > correction.step for hit in found]
        if not any(hit.hit_id == correction.new_id for hit in hits):
            return Check(claim, False, f"no answer brought the correction {correction.new_id}")
        for hit in hits:
            if hit.hit_id != correction.old_id:
                continue
            if hit.superseded_by != correction.new_id:
                return Check(claim, False, f"{hit.hit_id} came back without a mark")
            if not hit.current_value or hit.current_value not in correction.new_content:
                return Check(claim, False, f"{hit.hit_id} came back without its present value")
            marked += 1
    if not corrections:
        return Check(claim, False, "nothing was corrected")
    return Check(claim, True, f"{marked} superseded among the hits, all marked")


def _listed(steps: Sequence[int]) -> str:
    return ", ".join(str(step) for step in steps)
