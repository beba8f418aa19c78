"""Whatever a server answers, nothing breaks, and nothing is made of what is no count."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muniment.slots.answers import count_in, milliseconds_in
from muniment.slots.contents import SlotBook
from muniment.slots.models import fingerprint_of, seen_in
from muniment.slots.told import ToldSlot
from muniment.v1 import slots_pb2

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def _object(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON))


@given(
    _object(
        *("id", "n_ctx", "is_processing", "id_task", "n_prompt_tokens", "n_prompt_tokens_cache"),
        *("n_prompt_tokens_processed", "next_token"),
    )
)
def test_a_slot_tells_counts_or_nothing(told: dict[str, Any]) -> None:
    slot = ToldSlot.of(told)
    slots_pb2.Slot(
        context_tokens=slot.context_tokens,
        prompt_tokens=slot.prompt_tokens,
        reused_tokens=slot.reused_tokens,
        evaluated_tokens=slot.evaluated_tokens,
        content=SlotBook().content_of(slot),
    )


@given(
    _object(
        *("default_generation_settings", "total_slots", "model_path", "model_alias"),
        *("build_info", "is_sleeping", "media_marker", "chat_template", "endpoint_slots"),
    ),
    st.none() | _object("n_ctx"),
    _object("vocab_type", "n_vocab", "n_embd", "n_params", "size"),
)
def test_properties_are_understood_or_not(
    props: dict[str, Any], generation: dict[str, Any] | None, meta: dict[str, Any]
) -> None:
    seen = seen_in(props if generation is None else {**props, _SETTINGS: generation})
    if seen is not None:
        slots_pb2.ServedModel(
            name=seen.name,
            build=seen.build,
            fingerprint=fingerprint_of(seen, meta, is_local=True),
            slots=seen.slots,
            slot_context_tokens=seen.context_tokens,
        )


@given(_object("n_saved", "timings"), st.none() | _object("save_ms"))
def test_an_action_has_counts_or_none(
    answer: dict[str, Any], timings: dict[str, Any] | None
) -> None:
    whole = answer if timings is None else {**answer, "timings": timings}
    slots_pb2.SaveSnapshotResponse(
        elapsed_ms=count_in(whole, "n_saved"), server_ms=milliseconds_in(whole, "save_ms")
    )


_SETTINGS = "default_generation_settings"
