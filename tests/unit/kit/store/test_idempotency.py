"""A change is made once for its key, however often it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError, InvalidArgumentError, NotFoundError
from muniment.kit.store import REPLIES, Store, Writer, once
from muniment.v1 import memory_pb2, store_pb2
from tests.support.messages import vault_message
from tests.support.seams import FakeClock
from tests.support.stores import NUMBERED, a_store, content

CLOCK = FakeClock(1_750_000_000_000_000_000)
CONTEXT = CallContext(project_id="proj_1", session_id="s", slot_id=1, idempotency_key="key")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = a_store(tmp_path / "store")
    yield store
    store.close()


def append(writer: Writer) -> store_pb2.StoredEpisodeRef:
    """A change that is seen each time it is made."""
    number = writer.last_number(NUMBERED) + 1
    writer.put(NUMBERED, number, value=content("x"))
    return store_pb2.StoredEpisodeRef(seq=number)


def ask(
    store: Store, request: Message, context: CallContext = CONTEXT, change: Any = append
) -> int:
    def run(writer: Writer) -> store_pb2.StoredEpisodeRef:
        return once(writer, context, request, store_pb2.StoredEpisodeRef, change, CLOCK)

    return store.write(run).result().seq


def appended(store: Store) -> int:
    with store.read() as reader:
        return reader.count(NUMBERED)


REQUEST = memory_pb2.PinRequest(content="Never push to main.", session_id="s")


def test_the_same_request_is_answered_with_the_first_outcome(store: Store) -> None:
    assert [ask(store, REQUEST) for _ in range(3)] == [1, 1, 1]
    assert appended(store) == 1


def test_it_outlives_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        store = a_store(tmp_path / "store")
        assert ask(store, REQUEST) == 1
        store.close()


def test_other_keys_are_other_calls(store: Store) -> None:
    keys = ("key", "key2", "k", "é", "key")
    contexts = [replace(CONTEXT, idempotency_key=key) for key in keys]
    assert [ask(store, REQUEST, one) for one in contexts] == [1, 2, 3, 4, 1]


@pytest.mark.parametrize(
    "request_",
    [
        memory_pb2.PinRequest(content="Never push to main!", session_id="s"),
        memory_pb2.PinRequest(content="Never push to main."),
        memory_pb2.PinRequest(content="Never push to main.", session_id=""),
        memory_pb2.PinRequest(),
        # The same bytes, another method.
        memory_pb2.UnpinRequest(pin_id="Never push to main."),
    ],
)
def test_another_request_with_the_key_is_refused(store: Store, request_: Message) -> None:
    ask(store, REQUEST)
    with pytest.raises(ConflictError) as refused:
        ask(store, request_)
    assert (refused.value.reason, refused.value.field) == (
        "IDEMPOTENCY_KEY_REUSED",
        "idempotency_key",
    )
    assert appended(store) == 1
    assert ask(store, REQUEST) == 1


@pytest.mark.parametrize("elsewhere", [{"session_id": ""}, {"session_id": "t"}, {"slot_id": 0}])
def test_the_same_words_from_elsewhere_are_another_request(
    store: Store, elsewhere: dict[str, Any]
) -> None:
    ask(store, REQUEST)
    with pytest.raises(ConflictError):
        ask(store, REQUEST, replace(CONTEXT, **elsewhere))
    assert appended(store) == 1


def test_a_key_is_of_its_project(store: Store) -> None:
    other = replace(CONTEXT, project_id="proj_2")
    assert [ask(store, REQUEST, one) for one in (CONTEXT, other, CONTEXT, other)] == [1, 2, 1, 2]


def test_who_calls_and_from_which_root_does_not_matter(store: Store) -> None:
    again = replace(CONTEXT, caller="cli", traceparent="00-2", project_root="/elsewhere")
    assert [ask(store, REQUEST), ask(store, REQUEST, again)] == [1, 1]


def test_a_call_without_a_key_is_refused(store: Store) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        ask(store, REQUEST, replace(CONTEXT, idempotency_key=""))
    assert (refused.value.reason, refused.value.field) == (
        "IDEMPOTENCY_KEY_MISSING",
        "idempotency_key",
    )
    assert appended(store) == 0


def test_a_change_that_failed_may_be_tried_again(store: Store) -> None:
    def fail(writer: Writer) -> store_pb2.StoredEpisodeRef:
        append(writer)
        raise NotFoundError("is gone", reason="GONE")

    with pytest.raises(NotFoundError):
        ask(store, REQUEST, change=fail)
    assert appended(store) == 0
    assert ask(store, REQUEST) == 1


def test_what_is_kept_says_when_and_what(store: Store) -> None:
    ask(store, REQUEST)
    with store.read() as reader:
        kept = reader.get(REPLIES, "proj_1", "key")
    assert kept is not None
    assert kept.method == "muniment.v1.PinRequest"
    assert kept.created_at.ToNanoseconds() == CLOCK.now_ns()
    assert store_pb2.StoredEpisodeRef.FromString(kept.response).seq == 1
    assert len(kept.request_sha256) == 32


def test_secrets_are_neither_compared_nor_kept(store: Store, tmp_path: Path) -> None:
    vault: Any = vault_message()
    first = vault(title="title", password="hunter2", codes=["hunter2"])
    first.inside.password = "hunter2"
    other = vault(title="title", password="another")
    other.inside.SetInParent()
    assert [ask(store, first), ask(store, other)] == [1, 1]
    with pytest.raises(ConflictError):
        ask(store, vault(title="another", password="hunter2"))
    assert b"hunter2" not in (tmp_path / "store" / "data.mdb").read_bytes()
