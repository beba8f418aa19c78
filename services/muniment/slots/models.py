"""Which model a server serves: what it says of it, as one fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.slots.answers import count_of
from muniment.slots.failures import printable
from muniment.v1 import slots_pb2

__all__ = ["KIN_BYTES", "MOST_SLOTS", "Seen", "fingerprint_of", "seen_in", "subject_of"]

_EDGE_BYTES = 1024 * 1024
"""Of a model's file so much is hashed at both ends: the tables at the one, tensors at the other."""

_FINGERPRINT_DIGITS = 32

_MOST_TOKENS, MOST_SLOTS = 2**40, 2**20
"""No server has more; who says so is none."""

KIN_BYTES = 16


@dataclass(frozen=True)
class Seen:
    """What a server says of itself in /props, as far as it concerns us."""

    name: str
    path: str
    build: str
    slots: int
    context_tokens: int
    """Of one slot."""
    is_sleeping: bool
    has_slots: bool | None
    """Whether it lists its slots; None where it does not say."""
    run: str
    """Something that is drawn anew when the server starts, where there is such a thing."""
    settings: str
    """All of the above that flags of the server decide, and its chat template."""


def seen_in(props: Mapping[str, Any]) -> Seen | None:
    """What /props says; None where it is not the /props of a llama-server."""
    generation = props.get("default_generation_settings")
    context = count_of(generation.get("n_ctx")) if isinstance(generation, dict) else None
    slots = count_of(props.get("total_slots"))
    if context is None or slots is None:
        return None
    if not (0 < context <= _MOST_TOKENS and 0 < slots <= MOST_SLOTS):
        return None
    path = str(props.get("model_path") or "")
    told = props.get("endpoint_slots")
    settings = {
        name: props.get(name)
        for name in ("total_slots", "endpoint_slots", "endpoint_metrics", "modalities", "lora")
    }
    template = hashlib.sha256(str(props.get("chat_template")).encode()).hexdigest()
    return Seen(
        name=printable(str(props.get("model_alias") or Path(path).name or "unnamed")),
        path=path,
        build=printable(str(props.get("build_info") or "unknown")),
        slots=slots,
        context_tokens=context,
        is_sleeping=props.get("is_sleeping") is True,
        has_slots=told if isinstance(told, bool) else None,
        run=str(props.get("media_marker") or ""),
        settings=json.dumps([context, settings, template], sort_keys=True, default=str),
    )


def fingerprint_of(seen: Seen, meta: Mapping[str, Any], *, is_local: bool) -> str:
    """The model's fingerprint; `meta` is of /v1/models.

    Where the model's file can be read here, its ends are part of it: two tunings of one model say
    the same of themselves. Else its file's name is.
    """
    facts: dict[str, Any] = {
        name: meta.get(name) for name in ("vocab_type", "n_vocab", "n_embd", "n_params", "size")
    }
    edges = _file_edges(Path(seen.path)) if is_local and seen.path else None
    facts["file"] = edges or Path(seen.path).name or seen.name
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def _file_edges(path: Path) -> str | None:
    """A hash over size and ends of the file, or None where it is not to be read."""
    # A relative path is relative to wherever the server was started.
    if not path.is_absolute():
        return None
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            digest = hashlib.sha256(file.read(_EDGE_BYTES))
            size = file.seek(0, 2)
            file.seek(max(0, size - _EDGE_BYTES))
            digest.update(file.read(_EDGE_BYTES))
            digest.update(str(size).encode())
            return digest.hexdigest()
    except OSError:
        return None


def subject_of(model: slots_pb2.ServedModel, seen: Seen) -> bytes:
    """What that which is found out about a server holds for: build, model, settings; then the run.

    Two hashes of KIN_BYTES each: servers of which the first is equal differ in nothing that can be
    seen.
    """
    kin = json.dumps((model.fingerprint, seen.build, seen.settings))
    parts = (kin, json.dumps((kin, seen.run)))
    return b"".join(hashlib.sha256(one.encode()).digest()[:KIN_BYTES] for one in parts)
