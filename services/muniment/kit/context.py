"""A call's context: where it belongs and who makes it. It travels as metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from muniment.kit.errors import InvalidArgumentError
from muniment.kit.names import check_name
from muniment.v1 import common_pb2

__all__ = ["METADATA_KEY", "CallContext"]

METADATA_KEY = "muniment-context-bin"


@dataclass(frozen=True)
class CallContext:
    """Where a call belongs. Empty strings stand for what the caller does not have."""

    project_id: str = ""
    project_root: str = ""
    tenant_id: str = ""
    session_id: str = ""
    slot_id: int = 0
    caller: str = ""
    traceparent: str = ""
    idempotency_key: str = ""

    def to_metadata(self) -> tuple[tuple[str, bytes], ...]:
        """The gRPC metadata that carries this context."""
        message = common_pb2.CallContext(
            project_id=self.project_id,
            project_root=self.project_root,
            tenant_id=self.tenant_id,
            session_id=self.session_id,
            slot_id=self.slot_id,
            caller=self.caller,
            traceparent=self.traceparent,
            idempotency_key=self.idempotency_key,
        )
        return ((METADATA_KEY, message.SerializeToString(deterministic=True)),)

    @classmethod
    def from_metadata(cls, metadata: Iterable[tuple[str, str | bytes]]) -> CallContext:
        """The context that the metadata carries; an empty one where it carries none.

        Raises:
            InvalidArgumentError: The entry is not a CallContext, or a name is too long.
        """
        raw = dict(metadata).get(METADATA_KEY, b"")
        try:
            message = common_pb2.CallContext.FromString(raw if isinstance(raw, bytes) else b"\xff")
        except DecodeError as error:
            raise InvalidArgumentError(
                "is not a muniment.v1.CallContext",
                reason="CONTEXT_UNREADABLE",
                field=METADATA_KEY,
                fix="use a client of this version",
            ) from error
        context = cls(
            project_id=message.project_id,
            project_root=message.project_root,
            tenant_id=message.tenant_id,
            session_id=message.session_id,
            slot_id=message.slot_id,
            caller=message.caller,
            traceparent=message.traceparent,
            idempotency_key=message.idempotency_key,
        )
        for field in ("project_id", "tenant_id", "session_id", "idempotency_key"):
            check_name(field, getattr(context, field))
        return context
