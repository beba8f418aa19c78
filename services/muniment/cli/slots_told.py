"""Servers, slots and snapshots as plain values that turn into JSON.

A key is absent where there is nothing to say or nothing is known, but for `session_id`,
`file_path` and `size_bytes` of a snapshot, which are null.
"""

from __future__ import annotations

from typing import Any

from muniment.v1 import slots_pb2
from muniment.workflows.server_words import cache_coherence, word_of

__all__ = ["told_server", "told_slot", "told_snapshot"]

Told = dict[str, Any]


def told_server(server: slots_pb2.Server) -> Told:
    """What is known of a server."""
    told: Told = {
        "name": server.name,
        "url": server.url,
        "is_usual": server.is_usual,
        "condition": word_of(slots_pb2.ServerCondition, server.condition),
    }
    if server.HasField("detail"):
        told["detail"] = server.detail
    if server.HasField("fix"):
        told["fix"] = server.fix
    if server.HasField("model"):
        told["model"] = _told_model(server.model)
    told["capabilities"] = [_told_capability(one) for one in server.capabilities]
    told["cache_coherence"] = cache_coherence(server)
    told["restore_worth"] = [_told_worth(one) for one in server.restore_worth]
    if server.HasField("ready_at"):
        told["ready_at"] = server.ready_at.ToJsonString()
    return told


def told_slot(slot: slots_pb2.Slot) -> Told:
    """What is known of a slot."""
    told: Told = {
        "slot_id": slot.slot_id,
        "context_tokens": slot.context_tokens,
        "is_busy": slot.is_busy,
    }
    if slot.HasField("session_id"):
        told["session_id"] = slot.session_id
    if slot.HasField("prompt_tokens"):
        told["prompt_tokens"] = slot.prompt_tokens
    if slot.HasField("reused_tokens"):
        told["reused_tokens"] = slot.reused_tokens
    if slot.HasField("evaluated_tokens"):
        told["evaluated_tokens"] = slot.evaluated_tokens
    content = slot.content
    told["content"] = {"basis": word_of(slots_pb2.ContentBasis, content.basis)}
    if content.basis != slots_pb2.CONTENT_BASIS_NOT_KNOWN:
        told["content"]["tokens"] = content.tokens
    if content.HasField("snapshot_id"):
        told["content"]["snapshot_id"] = content.snapshot_id
    if content.chain_head:
        told["content"]["chain_head"] = content.chain_head.hex()
    return told


def told_snapshot(snapshot: slots_pb2.Snapshot) -> Told:
    """What is known of a snapshot."""
    told: Told = {
        "snapshot_id": snapshot.snapshot_id,
        "server": snapshot.server,
        "slot_id": snapshot.slot_id,
        "project_id": snapshot.project_id,
        "session_id": snapshot.session_id or None,
        "created_at": snapshot.created_at.ToJsonString(),
        "tokens": snapshot.tokens,
        "place": word_of(slots_pb2.SnapshotPlace, snapshot.place),
        "file_name": snapshot.file_name,
        "file_path": snapshot.file_path if snapshot.HasField("file_path") else None,
        "size_bytes": snapshot.size_bytes if snapshot.HasField("size_bytes") else None,
        "is_sealed": snapshot.is_sealed,
        "model": _told_model(snapshot.model),
        "restore_worth": [_told_worth(one) for one in snapshot.restore_worth],
    }
    if snapshot.HasField("kv_type"):
        told["kv_type"] = snapshot.kv_type
    if snapshot.chain_head:
        told["chain_head"] = snapshot.chain_head.hex()
    if snapshot.sha256:
        told["sha256"] = snapshot.sha256.hex()
    if snapshot.HasField("damage"):
        told["damage"] = snapshot.damage
    return told


def _told_model(model: slots_pb2.ServedModel) -> Told:
    return {
        "name": model.name,
        "fingerprint": model.fingerprint,
        "build": model.build,
        "slots": model.slots,
        "slot_context_tokens": model.slot_context_tokens,
        "tokenizer": model.tokenizer,
    }


def _told_capability(capability: slots_pb2.Capability) -> Told:
    told = {
        "kind": word_of(slots_pb2.CapabilityKind, capability.kind),
        "standing": word_of(slots_pb2.Standing, capability.standing),
        "detail": capability.detail,
    }
    return told | {"fix": capability.fix} if capability.HasField("fix") else told


def _told_worth(worth: slots_pb2.RestoreWorth) -> Told:
    return {
        "restored_tokens": worth.restored_tokens,
        "prompt_tokens": worth.prompt_tokens,
        "reused_tokens": worth.reused_tokens,
        "source": word_of(slots_pb2.WorthSource, worth.source),
        "measured_at": worth.measured_at.ToJsonString(),
    }
