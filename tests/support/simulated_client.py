"""A client of the simulation: it believes answers alone, and holds the store to them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message

from muniment.kit.clock import Clock
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    LimitError,
    MunimentError,
    NotFoundError,
    UnavailableError,
)
from muniment.kit.ids import IdMaker
from muniment.kit.index.lexical import LexicalIndex
from muniment.kit.store import Once, Reader, Store, Writer
from muniment.memory.episodes import append_episode, prepare_episode, read_content
from muniment.memory.pins import add_pin, list_pins, remove_pin
from muniment.memory.schema import EPISODES
from muniment.v1 import memory_pb2
from tests.support.rows import scan
from tests.support.store_checks import answer

__all__ = ["Call", "Client", "House", "Trace"]

_WORDS = ("harbour", "lantern", "quorum", "anchor", "ledger", "tide", "pilot")
_PATIENCE_SECONDS = 300.0
"""How long a client sends a call again; replies are kept for longer."""


class Trace:
    """What happened, line by line, and a digest of it all."""

    def __init__(self, clock: Clock) -> None:
        self.lines: list[str] = []
        self._clock = clock

    def note(self, who: str, what: str) -> None:
        """Add a line."""
        self.lines.append(f"{self._clock.monotonic():10.3f} {who:<8} {what}")

    @property
    def digest(self) -> str:
        """Equal for equal runs."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


@dataclass
class House:
    """What clients see of the world; store and index are others after each crash."""

    clock: Clock
    ids: IdMaker
    trace: Trace
    store: Store
    index: LexicalIndex


@dataclass(eq=False)
class Call:
    """A mutating call: once for its key, however often it is sent."""

    key: str
    content: str
    request: Message
    response_type: type[Message]
    change: Callable[[Writer], Any]
    sent_at: float
    future: Future[Any] | None = None
    answered: Message | None = None
    was_cancelled: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether an answer may still come."""
        return self.future is not None


@dataclass
class Client:
    """Commits, pins, recalls, sends again and takes back, as chance has it."""

    name: str
    context: CallContext
    chance: random.Random
    house: House
    calls: list[Call] = field(default_factory=list)

    def act(self) -> None:
        """Do one thing."""
        deeds = (self.commit, self.recall, self.pin, self.unpin, self.send_again, self.take_back)
        self.chance.choices(deeds, weights=(40, 25, 8, 5, 15, 7))[0]()

    def note(self, what: str) -> None:
        """Tell the trace."""
        self.house.trace.note(self.name, what)

    # --- Calls

    def commit(self) -> None:
        """Commit a turn that has a word of its own."""
        content = " ".join([self._own_word(), *self.chance.choices(_WORDS, k=4)])
        request = memory_pb2.CommitEpisodeRequest(role=memory_pb2.ROLE_USER, content=content)
        new = prepare_episode(self.context, request)

        def change(writer: Writer) -> memory_pb2.CommitEpisodeResponse:
            house = self.house
            episode = append_episode(writer, house.clock, house.ids, self.context, new)
            return memory_pb2.CommitEpisodeResponse(episode=episode)

        self._begin(content, request, memory_pb2.CommitEpisodeResponse, change)

    def pin(self) -> None:
        """Pin a rule that has a word of its own."""
        request = memory_pb2.PinRequest(content=f"{self._own_word()} always")
        self._begin(
            request.content,
            request,
            memory_pb2.PinResponse,
            lambda writer: add_pin(writer, self.house.clock, self.house.ids, self.context, request),
        )

    def unpin(self) -> None:
        """Take back a rule of one's own."""
        pinned = [call.answered for call in self.calls]
        known = [one.pin.pin_id for one in pinned if isinstance(one, memory_pb2.PinResponse)]
        if not known:
            return
        request = memory_pb2.UnpinRequest(pin_id=self.chance.choice(known))
        self._begin(
            request.pin_id,
            request,
            memory_pb2.UnpinResponse,
            lambda writer: remove_pin(writer, self.house.clock, self.context, request.pin_id),
        )

    def _own_word(self) -> str:
        return f"{self.name}n{len(self.calls)}"

    def _begin(
        self,
        content: str,
        request: Message,
        response_type: type[Message],
        change: Callable[[Writer], Any],
    ) -> None:
        key = f"{self.name}/{len(self.calls)}"
        call = Call(key, content, request, response_type, change, self.house.clock.monotonic())
        self.calls.append(call)
        self.note(f"{call.key} {request.DESCRIPTOR.name} {content!r}")
        self._send(call)

    def send_again(self) -> None:
        """Send again a call whose answer was lost, or that was answered."""
        now = self.house.clock.monotonic()
        known = [
            call
            for call in self.calls
            if not call.is_waiting
            and not call.was_cancelled
            and now - call.sent_at < _PATIENCE_SECONDS
        ]
        lost = [call for call in known if call.answered is None]
        if known:
            call = self.chance.choice(lost or known)
            self.note(f"{call.key} again")
            self._send(call)

    def take_back(self) -> None:
        """Cancel a call that waits for its first answer, if it has not begun."""
        waiting = [call for call in self.calls if call.future is not None]
        if not waiting:
            return
        call = self.chance.choice(waiting)
        assert call.future is not None
        if call.future.cancel():
            call.future = None
            # One that was sent before may have been done then.
            call.was_cancelled = call.answered is None
            self.note(f"{call.key} cancelled")

    def _send(self, call: Call) -> None:
        context = replace(self.context, idempotency_key=call.key)
        once: Once[Any] = Once(
            context, call.request, call.response_type, call.change, self.house.clock
        )
        call.future = self.house.store.write(once.run, written_by=self.name, remember=once.remember)

    # --- Answers

    def hear(self) -> None:
        """Take the answers that have come."""
        for call in self.calls:
            if call.future is not None and call.future.done():
                future, call.future = call.future, None
                self._hear(call, future)

    def _hear(self, call: Call, future: Future[Any]) -> None:
        error = future.exception(0)
        if error is None:
            response = future.result(0)
            assert call.answered in (None, response), "one call has two outcomes"
            call.answered = response
            self.note(f"{call.key} is answered")
        elif isinstance(error, NotFoundError):
            # A rule was taken back before; nothing else of this client can be unknown.
            assert isinstance(call.request, memory_pb2.UnpinRequest)
            call.was_cancelled = True
            self.note(f"{call.key} finds nothing")
        else:
            assert isinstance(error, LimitError | UnavailableError), error
            assert isinstance(error, MunimentError)
            self.note(f"{call.key} fails: {error.reason}")

    def lose(self) -> None:
        """The store is dead; answers that have not come will not come."""
        for call in self.calls:
            call.future = None

    @property
    def is_at_rest(self) -> bool:
        """Whether no call waits."""
        return not any(call.is_waiting for call in self.calls)

    # --- What must hold

    def recall(self) -> None:
        """Ask for a turn of one's own that was acknowledged."""
        done = self._done(memory_pb2.CommitEpisodeResponse)
        if not done:
            return
        call, response = self.chance.choice(done)
        with self.house.store.read() as reader:
            found = answer(reader, self.house.index, self.context, call.content.split()[0])
        digest = hashlib.sha256(found.SerializeToString(deterministic=True)).hexdigest()[:12]
        self.note(f"recalls {call.key}: {len(found.hits)} hits ({digest})")
        for hit in found.hits:
            assert hit.episode.project_id == self.context.project_id, "another's turn"
            assert not hit.tampered
        seqs = [hit.episode.seq for hit in found.hits]
        below = self.house.index.progress.below
        if response.episode.seq >= below:
            assert seqs == [response.episode.seq], "an acknowledged turn is not recalled"
        elif not seqs:
            assert any("being made anew" in note for note in found.notes)

    def _done(self, kind: type[Message]) -> list[tuple[Call, Any]]:
        return [(call, call.answered) for call in self.calls if isinstance(call.answered, kind)]

    def demand_kept(self, reader: Reader) -> None:
        """Hold the whole store to the answers."""
        by_content: dict[str, memory_pb2.Episode] = {}
        for (seq, *_), episode in scan(reader, EPISODES):
            if episode.session_id == self.context.session_id:
                content = read_content(reader, int(seq))
                assert content not in by_content, "one call was done twice"
                by_content[content] = episode
        for call, response in self._done(memory_pb2.CommitEpisodeResponse):
            kept = by_content.get(call.content)
            assert kept is not None, f"{call.key} was acknowledged and is lost"
            assert (kept.seq, kept.episode_id) == (
                response.episode.seq,
                response.episode.episode_id,
            )
        self._demand_pins(reader)

    def _demand_pins(self, reader: Reader) -> None:
        pins = list_pins(reader, self.context.project_id, self.context.session_id)
        assert not pins.tampered_pins
        in_force = {pin.pin_id for pin in pins.pins}
        unpins = [call for call in self.calls if isinstance(call.request, memory_pb2.UnpinRequest)]
        tried = {call.content for call in unpins}
        gone = {call.content for call in unpins if call.answered is not None}
        pinned = {one.pin.pin_id for _, one in self._done(memory_pb2.PinResponse)}
        assert not gone & in_force, "a rule that was taken back is in force"
        assert pinned - tried <= in_force, "an acknowledged rule is lost"
