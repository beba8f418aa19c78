"""Exactly once: the same call again has the same outcome, and makes no second change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from muniment.kit import errors
from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError, InvalidArgumentError, MunimentError
from muniment.kit.store import Once, Writer
from muniment.kit.store.tables import REPLIES, REPLY_TIMES
from muniment.v1 import memory_pb2, store_pb2
from tests.support.messages import vault_message
from tests.support.seams import FakeClock
from tests.support.stores import EVENTS, NOTES, Stepped, demand_sound, text

LIFE_SECONDS = 3600.0

REQUEST = memory_pb2.PinRequest(content="Never push to main.", session_id="s")
CONTEXT = CallContext(project_id="proj_1", session_id="s", slot_id=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stepped(tmp_path: Path, clock: FakeClock) -> Iterator[Stepped]:
    opened = Stepped(tmp_path / "store", clock=clock, reply_life_seconds=LIFE_SECONDS)
    yield opened
    demand_sound(opened.store)
    opened.close()


def asked(
    stepped: Stepped,
    key: str,
    change: Callable[[Writer], store_pb2.StoredContent] | None = None,
    request: Message = REQUEST,
    context: CallContext = CONTEXT,
) -> Future[store_pb2.StoredContent]:
    """The future outcome of a call that appends one event."""
    context = replace(context, idempotency_key=key)
    once = Once(context, request, store_pb2.StoredContent, change or appending, stepped.clock)
    return stepped.store.write(once.run, remember=once.remember)


def call(stepped: Stepped, key: str, *more: Any, **named: Any) -> store_pb2.StoredContent:
    """The outcome of a call that appends one event."""
    future = asked(stepped, key, *more, **named)
    stepped.step()
    return future.result(timeout=0)


def appending(writer: Writer) -> store_pb2.StoredContent:
    number = writer.last_number(EVENTS) + 1
    writer.put(EVENTS, number, value=text("happened"))
    return text(f"event {number}")


def failing(
    error: Exception, *, writes: bool = True
) -> Callable[[Writer], store_pb2.StoredContent]:
    def change(writer: Writer) -> store_pb2.StoredContent:
        if writes:
            appending(writer)
        raise error

    return change


def counted(stepped: Stepped, table: Any) -> int:
    return stepped.look(lambda reader: reader.count(table))


def test_a_repeated_call_has_the_same_outcome_and_changes_nothing(stepped: Stepped) -> None:
    assert call(stepped, "k1").text == "event 1"
    assert call(stepped, "k2").text == "event 2"
    assert call(stepped, "k").text == "event 3"
    assert call(stepped, "é").text == "event 4"
    assert call(stepped, "k1").text == "event 1"
    assert counted(stepped, EVENTS) == 4


def test_repeats_in_one_batch_are_one_change(stepped: Stepped) -> None:
    futures = [asked(stepped, "k") for _ in range(3)]
    stepped.step()
    assert [future.result(0).text for future in futures] == ["event 1"] * 3
    assert counted(stepped, EVENTS) == 1


def test_the_outcome_survives_a_crash(tmp_path: Path) -> None:
    before = Stepped(tmp_path / "mortal")
    call(before, "k")
    before.die()
    after = Stepped(tmp_path / "mortal")
    assert call(after, "k").text == "event 1"
    assert counted(after, EVENTS) == 1
    after.close()


@pytest.mark.parametrize(
    "other",
    [
        memory_pb2.PinRequest(content="Never push to main!", session_id="s"),
        memory_pb2.PinRequest(content="Never push to main."),
        memory_pb2.PinRequest(content="Never push to main.", session_id=""),
        memory_pb2.PinRequest(),
        # The same bytes, another method.
        memory_pb2.UnpinRequest(pin_id="Never push to main."),
    ],
)
def test_another_request_with_the_key_is_an_error_and_so_it_stays(
    stepped: Stepped, other: Message
) -> None:
    first = memory_pb2.PinRequest(content="Never push to main.", session_id="s")
    if isinstance(other, memory_pb2.UnpinRequest):
        first = memory_pb2.PinRequest(content=other.pin_id)
        assert first.SerializeToString() == other.SerializeToString()
    call(stepped, "k", request=first)
    for _ in range(2):
        with pytest.raises(ConflictError) as caught:
            call(stepped, "k", request=other)
        assert caught.value.reason == "IDEMPOTENCY_KEY_REUSED"
        assert caught.value.field == "idempotency_key"
    assert call(stepped, "k", request=first).text == "event 1"
    assert counted(stepped, EVENTS) == 1


@pytest.mark.parametrize("elsewhere", [{"session_id": ""}, {"session_id": "t"}, {"slot_id": 0}])
def test_the_same_words_from_elsewhere_are_another_request(
    stepped: Stepped, elsewhere: dict[str, Any]
) -> None:
    call(stepped, "k")
    with pytest.raises(ConflictError):
        call(stepped, "k", context=replace(CONTEXT, **elsewhere))
    assert counted(stepped, EVENTS) == 1


def test_a_key_is_of_its_project(stepped: Stepped) -> None:
    other = replace(CONTEXT, project_id="proj_2")
    outcomes = [call(stepped, "k", context=one).text for one in (CONTEXT, other, CONTEXT, other)]
    assert outcomes == ["event 1", "event 2", "event 1", "event 2"]


def test_who_calls_and_from_which_root_does_not_matter(stepped: Stepped) -> None:
    again = replace(CONTEXT, caller="cli", traceparent="00-2", project_root="/elsewhere")
    assert [call(stepped, "k", context=one).text for one in (CONTEXT, again)] == ["event 1"] * 2


def test_secrets_are_neither_compared_nor_kept(stepped: Stepped) -> None:
    vault: Any = vault_message()
    first = vault(title="title", password="hunter2", codes=["hunter2"])
    first.inside.password = "hunter2"
    other = vault(title="title", password="another")
    other.inside.SetInParent()
    outcomes = [call(stepped, "k", request=request).text for request in (first, other)]
    assert outcomes == ["event 1"] * 2
    with pytest.raises(ConflictError):
        call(stepped, "k", request=vault(title="another", password="hunter2"))
    assert b"hunter2" not in (stepped.store.path / "data.mdb").read_bytes()


def test_what_is_kept_says_when_and_what(stepped: Stepped, clock: FakeClock) -> None:
    call(stepped, "k")
    kept = stepped.look(lambda reader: reader.get(REPLIES, "proj_1", "k"))
    assert kept is not None
    assert kept.method == "muniment.v1.PinRequest"
    assert kept.created_at.ToNanoseconds() == clock.now_ns()
    assert store_pb2.StoredContent.FromString(kept.response).text == "event 1"
    assert len(kept.request_sha256) == 32


@pytest.mark.parametrize("writes", [False, True], ids=["at once", "half done"])
@pytest.mark.parametrize("kind", ["Conflict", "InvalidArgument", "NotFound", "Precondition"])
def test_an_error_that_is_an_outcome_is_kept_whole(
    stepped: Stepped, kind: str, writes: bool
) -> None:
    kept: type[MunimentError] = getattr(errors, f"{kind}Error")
    error = kept("is wrong", reason="WRONG", field="name", fix="do it right")
    with pytest.raises(kept):
        call(stepped, "k", failing(error, writes=writes))
    assert counted(stepped, EVENTS) == 0
    with pytest.raises(kept) as caught:
        call(stepped, "k")
    again = caught.value
    assert (again.message, again.reason, again.field, again.fix) == (
        "is wrong",
        "WRONG",
        "name",
        "do it right",
    )
    assert counted(stepped, EVENTS) == 0


@pytest.mark.parametrize(
    "error",
    [
        errors.UnavailableError("is down", reason="DOWN"),
        errors.LimitError("is full", reason="FULL"),
        errors.TamperedError("was edited", reason="ROW_TAMPERED"),
        ValueError("a defect"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_may_pass_is_not_kept(stepped: Stepped, error: Exception) -> None:
    with pytest.raises(type(error)):
        call(stepped, "k", failing(error))
    assert call(stepped, "k").text == "event 1"


def test_an_error_without_field_and_fix_comes_back_without(stepped: Stepped) -> None:
    error = errors.NotFoundError("is not there", reason="UNKNOWN")
    for change in (failing(error), appending):
        with pytest.raises(errors.NotFoundError) as caught:
            call(stepped, "k", change)
        assert (caught.value.field, caught.value.fix) == (None, None)


def test_a_call_without_a_key_is_refused_and_leaves_nothing(stepped: Stepped) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call(stepped, "")
    assert (caught.value.reason, caught.value.field) == (
        "IDEMPOTENCY_KEY_MISSING",
        "idempotency_key",
    )
    assert counted(stepped, REPLIES) == counted(stepped, EVENTS) == 0


def test_an_outcome_is_forgotten_after_its_life(stepped: Stepped, clock: FakeClock) -> None:
    call(stepped, "k")
    clock.move(LIFE_SECONDS - 1)
    call(stepped, "other")
    assert call(stepped, "k").text == "event 1"
    clock.move(2)
    call(stepped, "third")
    assert call(stepped, "k").text == "event 4"
    assert counted(stepped, REPLIES) == counted(stepped, REPLY_TIMES) == 3


def test_forgetting_keeps_up_with_the_largest_batches(stepped: Stepped, clock: FakeClock) -> None:
    def batch(name: str) -> None:
        for number in range(200):
            asked(stepped, f"{name}{number}")
        stepped.step()

    batch("a")
    clock.move(LIFE_SECONDS + 1)
    batch("b")
    assert counted(stepped, REPLIES) == counted(stepped, REPLY_TIMES) == 200


def test_forgetting_goes_little_by_little(stepped: Stepped, clock: FakeClock) -> None:
    for number in range(100):
        asked(stepped, str(number))
    stepped.step()
    clock.move(LIFE_SECONDS + 1)
    stepped.put(NOTES, "a", value="a")
    assert 0 < counted(stepped, REPLIES) < 100
    stepped.put(NOTES, "a", value="b")
    assert counted(stepped, REPLIES) == counted(stepped, REPLY_TIMES) == 0


def test_a_tampered_entry_stops_neither_writers_nor_forgetting(
    tmp_path: Path, clock: FakeClock
) -> None:
    stepped = Stepped(tmp_path / "other", clock=clock, reply_life_seconds=LIFE_SECONDS)
    call(stepped, "k1")
    call(stepped, "k2")

    def edit(transaction: Any, databases: Any) -> None:
        cursor = transaction.cursor(db=databases["reply_times"])
        cursor.first()
        transaction.put(cursor.key(), cursor.value() + b"x", db=databases["reply_times"])

    stepped.raw(edit)
    clock.move(LIFE_SECONDS + 1)
    stepped.put(NOTES, "a", value="a")
    assert stepped.rows(NOTES) == {("a",): "a"}
    assert counted(stepped, REPLIES) == 1
    stepped.die()
