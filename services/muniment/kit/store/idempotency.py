"""Exactly once: a call's outcome, kept in the transaction of its change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

from muniment.kit.clock import Clock, timestamp
from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError, InvalidArgumentError
from muniment.kit.logging import without_secrets
from muniment.kit.store.store import Writer
from muniment.kit.store.tables import REPLIES
from muniment.v1 import store_pb2

__all__ = ["once"]

R = TypeVar("R", bound=Message)


def once(
    writer: Writer,
    context: CallContext,
    request: Message,
    response_type: type[R],
    change: Callable[[Writer], R],
    clock: Clock,
) -> R:
    """The change's response; the first one again, where the context's key was answered before.

    A key is of its project. The same words from another session or slot are another request.
    Fields that carry secrets take no part in the comparison and are not kept.

    Raises:
        InvalidArgumentError: The key is empty.
        ConflictError: The key was used for another request.
    """
    key = context.idempotency_key
    if not key:
        raise InvalidArgumentError(
            "a call that writes needs one",
            reason="IDEMPOTENCY_KEY_MISSING",
            field="idempotency_key",
            fix="send a fresh key with the call, and the same key when you repeat it",
        )
    method = request.DESCRIPTOR.full_name
    # Names have no control characters, so the places of two contexts cannot run together.
    place = f"{context.session_id}\n{context.slot_id}\n"
    comparable = without_secrets(request).SerializeToString(deterministic=True)
    digest = hashlib.sha256(place.encode() + comparable).digest()
    kept = writer.get(REPLIES, context.project_id, key)
    if kept is not None:
        if (kept.method, kept.request_sha256) != (method, digest):
            raise ConflictError(
                "was used for another request",
                reason="IDEMPOTENCY_KEY_REUSED",
                field="idempotency_key",
                fix="use a fresh key for each request",
            )
        return response_type.FromString(kept.response)
    response = change(writer)
    writer.put(
        REPLIES,
        context.project_id,
        key,
        value=store_pb2.StoredReply(
            method=method,
            request_sha256=digest,
            response=response.SerializeToString(deterministic=True),
            created_at=timestamp(clock),
        ),
    )
    return response
