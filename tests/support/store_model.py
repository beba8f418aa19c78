"""What a store with a memory in it should hold, as plain dictionaries, and jobs that change both.

A job is a list of steps that are kept together or not at all. The model runs it on dictionaries,
the store on its tables; both must end the same.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message

from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError, NotFoundError
from muniment.kit.ids import IdMaker
from muniment.kit.store import Once, Reader, Schema, Table, Writer
from muniment.kit.store.tables import REPLIES
from muniment.memory import schema as memory
from muniment.memory.episodes import append_episode, prepare_episode, read_content
from muniment.memory.pins import add_pin, list_pins, remove_pin
from muniment.v1 import memory_pb2, store_pb2
from tests.support.rows import scan
from tests.support.stores import COUNTS, EVENTS, LOOSE, NOTES, text

__all__ = ["CONTEXT", "SCHEMA", "TABLES", "Failure", "Hands", "Job", "Model", "Step", "held"]

SCHEMA = Schema(9, (*memory.SCHEMA.tables, NOTES, EVENTS, COUNTS, LOOSE))

TABLES: dict[str, Table[store_pb2.StoredContent]] = {
    table.name: table for table in (NOTES, EVENTS, COUNTS, LOOSE)
}

_LONG = 600

CONTEXT = CallContext(project_id="proj_model", session_id="s")


class Failure(Exception):
    """What a job ends with that fails on purpose, and is not kept as its outcome."""


@dataclass(frozen=True)
class Step:
    """One thing that a job does: `put`, `delete`, `episode`, `pin`, `unpin`, `refuse`, `fail`."""

    does: str
    table: str = ""
    key: tuple[str | int, ...] = ()
    value: str = ""
    """A text that ends with `…` stands for a long one, here and in keys."""


@dataclass(frozen=True)
class Job:
    """Steps that are kept together; once for its key, where it has one."""

    steps: tuple[Step, ...]
    idempotency_key: str = ""

    @property
    def request(self) -> Message:
        """What tells two jobs with one key apart."""
        return text(repr(self.steps))


@dataclass
class Model:
    """The committed contents."""

    tables: dict[str, dict[Any, str]] = field(default_factory=lambda: {name: {} for name in TABLES})
    episodes: list[str] = field(default_factory=list)
    pins: set[str] = field(default_factory=set)
    replies: dict[str, tuple[Job, Any, int]] = field(default_factory=dict)
    """By key: the job, its outcome, and when."""

    def copy(self) -> Model:
        """This, as it is now."""
        return copy.deepcopy(self)

    def run(self, job: Job, now_ns: int) -> Any:
        """Do the job. The number of its steps, or the type of the error that it ends with."""
        if not job.idempotency_key:
            return self._attempt(job)
        if job.idempotency_key in self.replies:
            known, outcome, _ = self.replies[job.idempotency_key]
            return outcome if known == job else ConflictError
        outcome = self._attempt(job)
        if outcome is not Failure:
            self.replies[job.idempotency_key] = job, outcome, now_ns
        return outcome

    def forget(self, kept: set[str], before_ns: int) -> None:
        """Forget the replies that were not kept; only those from before may be."""
        for key in set(self.replies) - kept:
            _, _, at = self.replies.pop(key)
            assert at < before_ns

    def _attempt(self, job: Job) -> Any:
        changed = self.copy()
        for step in job.steps:
            error = changed._do(step)
            if error is not None:
                return error
        vars(self).update(vars(changed))
        return len(job.steps)

    def _do(self, step: Step) -> type[Exception] | None:
        if step.does == "put":
            self.tables[step.table][_key(step)] = _spelled(step.value)
        elif step.does == "delete":
            self.tables[step.table].pop(_key(step), None)
        elif step.does == "episode":
            self.episodes.append(step.value)
        elif step.does == "pin":
            self.pins.add(step.value)
        elif step.does == "unpin":
            if step.value not in self.pins:
                return NotFoundError
            self.pins.remove(step.value)
        elif step.does == "refuse":
            return NotFoundError
        else:
            return Failure
        return None

    def contents(self) -> dict[str, Any]:
        """All that can be seen of it."""
        return {
            **self.tables,
            "episodes": self.episodes,
            "pins": self.pins,
            "replies": set(self.replies),
        }


def _spelled(value: str) -> str:
    return value[:-1] * _LONG if value.endswith("…") else value


def _key(step: Step) -> tuple[str | int, ...]:
    return tuple(_spelled(part) if isinstance(part, str) else part for part in step.key)


def held(reader: Reader) -> dict[str, Any]:
    """The store's contents, as the model tells them."""
    found: dict[str, Any] = {
        name: {key: row.text for key, row in scan(reader, table)} for name, table in TABLES.items()
    }
    seqs = [int(key[0]) for key, _ in scan(reader, memory.EPISODES)]
    assert seqs == list(range(1, len(seqs) + 1))
    found["episodes"] = [read_content(reader, seq) for seq in seqs]
    pins = list_pins(reader, CONTEXT.project_id, None)
    found["pins"] = {pin.content for pin in pins.pins}
    # Their keys are blinded in a sealed store; scanning gives them as they were.
    found["replies"] = {key[1] for key, _ in scan(reader, REPLIES)}
    return found


@dataclass(frozen=True)
class Hands:
    """Does jobs to a store."""

    clock: Clock
    ids: IdMaker

    def once(self, job: Job) -> Once[store_pb2.StoredContent]:
        """The job as a call with its key."""

        def change(writer: Writer) -> store_pb2.StoredContent:
            return text(str(self.do(writer, job.steps)))

        context = replace(CONTEXT, idempotency_key=job.idempotency_key)
        return Once(context, job.request, store_pb2.StoredContent, change, self.clock)

    def do(self, writer: Writer, steps: Iterable[Step]) -> int:
        """Do the steps; their number."""
        done = 0
        for step in steps:
            self._do(writer, step)
            done += 1
        return done

    def _do(self, writer: Writer, step: Step) -> None:
        if step.does == "put":
            self._mark(writer, step)
            writer.put(TABLES[step.table], *_key(step), value=text(_spelled(step.value)))
        elif step.does == "delete":
            self._mark(writer, step)
            writer.delete(TABLES[step.table], *_key(step))
        elif step.does == "episode":
            self._append(writer, step.value)
        elif step.does == "pin":
            request = memory_pb2.PinRequest(content=step.value)
            add_pin(writer, self.clock, self.ids, CONTEXT, request)
        elif step.does == "unpin":
            self._unpin(writer, step.value)
        elif step.does == "refuse":
            raise NotFoundError("is not there", reason="UNKNOWN")
        else:
            raise Failure

    def _mark(self, writer: Writer, step: Step) -> None:
        # A mutable table beside the feed is written after a change in the feed.
        if step.table == COUNTS.name:
            writer.delete(NOTES, "mark")
            writer.put(NOTES, "mark", value=text("m"))
            writer.delete(NOTES, "mark")

    def _append(self, writer: Writer, content: str) -> None:
        request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=content)
        append_episode(writer, self.clock, self.ids, CONTEXT, prepare_episode(CONTEXT, request))

    def _unpin(self, writer: Writer, content: str) -> None:
        digest = hashlib.sha256(content.encode()).digest()
        reference = writer.get(memory.PIN_SCOPES, CONTEXT.project_id, "", digest)
        pin_id = "pin_unknown" if reference is None else reference.pin_id
        remove_pin(writer, self.clock, CONTEXT, pin_id)
