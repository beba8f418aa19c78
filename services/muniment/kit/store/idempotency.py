"""Exactly once: a call's outcome, kept in the transaction of its change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from muniment.kit import errors
from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import (
    ConflictError,
    InvalidArgumentError,
    MunimentError,
    TamperedError,
)
from muniment.kit.logging import without_secrets
from muniment.kit.store.keys import KeyPart
from muniment.kit.store.tables import REPLIES, REPLY_TIMES
from muniment.kit.store.transaction import Writer
from muniment.v1 import store_pb2

__all__ = ["Once", "forget_replies"]

R = TypeVar("R", bound=Message)


@dataclass(frozen=True)
class Once(Generic[R]):
    """A change that is made once for its key, however often it is asked for.

    A key is of its project. The same words from another session or slot are another request. The
    request's fields that carry secrets take no part in the comparison and are not kept.
    """

    context: CallContext
    request: Message
    response_type: type[R]
    change: Callable[[Writer], R]
    clock: Clock

    def run(self, writer: Writer) -> R:
        """The change's response; the first outcome again, where this key was answered before.

        Raises:
            InvalidArgumentError: The key is empty.
            ConflictError: The key was used for another request.
            MunimentError: As the change, or as it did the first time.
        """
        if not self.context.idempotency_key:
            raise InvalidArgumentError(
                "a call that writes needs one",
                reason="IDEMPOTENCY_KEY_MISSING",
                field="idempotency_key",
                fix="send a fresh key with the call, and the same key when you repeat it",
            )
        kept = writer.get(REPLIES, *self._key)
        if kept is None:
            response = self.change(writer)
            self._keep(writer, store_pb2.StoredReply(response=_bytes(response)))
            return response
        if (kept.method, kept.request_sha256) != self._request():
            raise ConflictError(
                "was used for another request",
                reason="IDEMPOTENCY_KEY_REUSED",
                field="idempotency_key",
                fix="use a fresh key for each request",
            )
        if kept.HasField("error"):
            raise _error(kept.error)
        return self.response_type.FromString(kept.response)

    def remember(self, writer: Writer, error: MunimentError) -> None:
        """Keep an error as the outcome, unless the key has one."""
        if self.context.idempotency_key and writer.get(REPLIES, *self._key) is None:
            self._keep(writer, store_pb2.StoredReply(error=_stored_error(error)))

    def _keep(self, writer: Writer, reply: store_pb2.StoredReply) -> None:
        reply.method, reply.request_sha256 = self._request()
        reply.created_at.CopyFrom(timestamp(self.clock))
        writer.put(REPLIES, *self._key, value=reply)
        at = reply.created_at.ToNanoseconds()
        writer.put(REPLY_TIMES, at, *self._key, value=store_pb2.StoredReplyTime())

    @property
    def _key(self) -> tuple[str, str]:
        return self.context.project_id, self.context.idempotency_key

    def _request(self) -> tuple[str, bytes]:
        # Names have no control characters, so the places of two contexts cannot run together.
        place = f"{self.context.session_id}\n{self.context.slot_id}\n"
        digest = hashlib.sha256(place.encode() + _bytes(without_secrets(self.request))).digest()
        return self.request.DESCRIPTOR.full_name, digest


def forget_replies(writer: Writer, clock: Clock, life_seconds: float, most: int) -> None:
    """Forget the oldest outcomes that are past their life, so many at most."""
    before = clock.now_ns() - int(life_seconds * 1_000_000_000)
    expired: list[tuple[KeyPart, ...]] = []
    for key, value in writer.survey(REPLY_TIMES):
        if isinstance(value, TamperedError):
            continue
        if not isinstance(key[0], int) or key[0] >= before or len(expired) == most:
            break
        expired.append(key)
    for key in expired:
        writer.delete(REPLY_TIMES, *key)
        writer.delete(REPLIES, *key[1:])


def _stored_error(error: MunimentError) -> store_pb2.StoredError:
    return store_pb2.StoredError(
        # A kind that only its service knows is kept as the one that it is of.
        kind=next(one.__name__ for one in type(error).__mro__ if hasattr(errors, one.__name__)),
        message=error.message,
        reason=error.reason,
        field=error.field or "",
        fix=error.fix or "",
    )


def _error(stored: store_pb2.StoredError) -> MunimentError:
    kind: type[MunimentError] = getattr(errors, stored.kind)
    return kind(
        stored.message,
        reason=stored.reason,
        field=stored.field or None,
        fix=stored.fix or None,
    )


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)
