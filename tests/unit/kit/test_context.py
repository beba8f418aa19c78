"""A call's context arrives as it was sent, or is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.context import METADATA_KEY, CallContext
from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import NAME_LIMIT_BYTES
from muniment.v1 import common_pb2

names = st.text(max_size=40).filter(str.isprintable)
contexts = st.builds(
    CallContext,
    project_id=names,
    project_root=st.text(max_size=80),
    session_id=names,
    slot_id=st.integers(0, 2**32 - 1),
    caller=names,
    traceparent=st.text(max_size=60),
    idempotency_key=names,
)


@settings(max_examples=30)
@given(contexts)
def test_it_arrives_as_it_was_sent(context: CallContext) -> None:
    assert CallContext.from_metadata(context.to_metadata()) == context


def test_roots_may_have_any_name() -> None:
    context = CallContext(project_id="proj_1", project_root="/home/ж/日本語 é/🏠")
    ((key, value),) = context.to_metadata()
    assert key.endswith("-bin")
    assert CallContext.from_metadata([("user-agent", "x"), (key, value)]) == context


def test_no_entry_is_an_empty_context() -> None:
    assert CallContext.from_metadata([("user-agent", "grpc")]) == CallContext()
    assert CallContext.from_metadata([]) == CallContext()


@pytest.mark.parametrize("field", ["project_id", "session_id", "idempotency_key"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("x" * (NAME_LIMIT_BYTES + 1), "NAME_TOO_LONG"),
        ("é" * 101, "NAME_TOO_LONG"),
        ("a\nb", "NAME_UNPRINTABLE"),
        ("a\0b", "NAME_UNPRINTABLE"),
    ],
)
def test_names_that_could_not_be_kept_are_refused(field: str, value: str, reason: str) -> None:
    message = common_pb2.CallContext(**{field: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError) as refused:
        CallContext.from_metadata([(METADATA_KEY, message.SerializeToString())])
    assert (refused.value.reason, refused.value.field) == (reason, field)


@pytest.mark.parametrize(
    "value",
    [b"\xff", b"\x0a\x05abc", b"\x0a\x02\xff\xfe", b"garbage", "text that is no message"],
    ids=["no tag", "cut", "no utf-8", "garbage", "text"],
)
def test_garbage_is_refused(value: str | bytes) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        CallContext.from_metadata([(METADATA_KEY, value)])
    assert (refused.value.reason, refused.value.field) == ("CONTEXT_UNREADABLE", METADATA_KEY)


@settings(max_examples=50)
@given(st.binary(max_size=60))
def test_no_bytes_are_a_surprise(value: bytes) -> None:
    with suppress(InvalidArgumentError):
        CallContext.from_metadata([(METADATA_KEY, value)])


def test_fields_of_a_newer_client_do_not_disturb() -> None:
    ((key, value),) = CallContext(project_id="proj_1").to_metadata()
    newer = value + b"\xfa\x01\x03new"
    assert CallContext.from_metadata([(key, newer)]).project_id == "proj_1"
