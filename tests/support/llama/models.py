"""Tiny models in GGUF files, made on the spot: random weights, and a vocabulary of this repository.

What they say is noise. How their server counts, saves, restores and reuses is the real thing.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import gguf
import numpy as np
import sentencepiece

from tests.support.tools import ROOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FOREIGN", "SLIDING", "TINY", "ModelFiles", "ModelPlan", "build_model"]


_TEXTS = ("docs/**/*.md", "*.md", "protos/**/*.proto", "services/muniment/kit/*.py")
_TRAINING_LINES = 6000

_TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
_WEIGHT = 0.05


@dataclass(frozen=True)
class ModelPlan:
    """What a model is made of; the same plan makes the same file."""

    name: str
    seed: int = 1
    architecture: str = "llama"
    vocabulary: int = 2000
    layers: int = 2
    width: int = 64
    inner_width: int = 128
    heads: int = 4
    context_tokens: int = 8192
    sliding_window: int | None = None


TINY = ModelPlan("tiny")
"""The ordinary one."""

FOREIGN = ModelPlan("foreign", seed=2, vocabulary=1600)
"""Of the same build, with other weights and another vocabulary."""

# Every sixth layer of Gemma 3 sees the whole context.
SLIDING = ModelPlan("sliding", architecture="gemma3", layers=6, sliding_window=64)
"""Most of its layers see only the last 64 tokens."""


class ModelFiles:
    """Files of models in one folder, each made when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, plan: ModelPlan) -> Path:
        """The model's file."""
        path = self._folder / f"{plan.name}.gguf"
        return path if path.exists() else build_model(plan, self._folder)


def build_model(plan: ModelPlan, folder: Path) -> Path:
    """Write the model into the folder.

    Returns:
        Its file.
    """
    path = folder / f"{plan.name}.gguf"
    writer = gguf.GGUFWriter(path, plan.architecture)
    _describe(writer, plan)
    _add_vocabulary(writer, _train(plan))
    for name, tensor in _tensors(plan):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer: gguf.GGUFWriter, plan: ModelPlan) -> None:
    head = plan.width // plan.heads
    writer.add_name(plan.name)
    writer.add_context_length(plan.context_tokens)
    writer.add_embedding_length(plan.width)
    writer.add_block_count(plan.layers)
    writer.add_feed_forward_length(plan.inner_width)
    writer.add_head_count(plan.heads)
    writer.add_head_count_kv(plan.heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(plan.vocabulary)
    if plan.sliding_window is not None:
        writer.add_sliding_window(plan.sliding_window)


def _train(plan: ModelPlan) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_training_lines(plan.seed),
        model_writer=model,
        vocab_size=plan.vocabulary,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=0.999,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def _training_lines(seed: int) -> Iterator[str]:
    """Lines of this repository; each seed begins at another."""
    files = sorted({path for pattern in _TEXTS for path in ROOT.glob(pattern)})
    lines = [line for path in files for line in path.read_text().splitlines() if line]
    start = seed * 997 % len(lines)
    return itertools.islice(itertools.cycle(lines), start, start + _TRAINING_LINES)


def _add_vocabulary(writer: gguf.GGUFWriter, trained: sentencepiece.SentencePieceProcessor) -> None:
    ids = range(trained.get_piece_size())
    writer.add_tokenizer_model("llama")
    writer.add_token_list([trained.id_to_piece(number).encode() for number in ids])
    writer.add_token_scores([trained.get_score(number) for number in ids])
    writer.add_token_types([_token_type(trained, number) for number in ids])
    writer.add_bos_token_id(trained.bos_id())
    writer.add_eos_token_id(trained.eos_id())
    writer.add_unk_token_id(trained.unk_id())
    writer.add_chat_template(_TEMPLATE)


def _token_type(trained: sentencepiece.SentencePieceProcessor, number: int) -> gguf.TokenType:
    if trained.is_unknown(number):
        return gguf.TokenType.UNKNOWN
    if trained.is_control(number):
        return gguf.TokenType.CONTROL
    return gguf.TokenType.BYTE if trained.is_byte(number) else gguf.TokenType.NORMAL


def _tensors(plan: ModelPlan) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Names and weights, as the architecture wants them."""
    chance = np.random.default_rng(plan.seed)
    width, inner = plan.width, plan.inner_width
    is_gemma = plan.architecture == "gemma3"

    def weights(*shape: int) -> NDArray[np.float32]:
        return chance.standard_normal(shape, np.float32) * np.float32(_WEIGHT)

    def ones(count: int) -> NDArray[np.float32]:
        return np.ones(count, np.float32)

    yield "token_embd.weight", weights(plan.vocabulary, width)
    yield "output_norm.weight", ones(width)
    if not is_gemma:
        yield "output.weight", weights(plan.vocabulary, width)
    for layer in range(plan.layers):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones(width)
        yield f"{block}.ffn_norm.weight", ones(width)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{block}.{part}.weight", weights(width, width)
        yield f"{block}.ffn_gate.weight", weights(inner, width)
        yield f"{block}.ffn_up.weight", weights(inner, width)
        yield f"{block}.ffn_down.weight", weights(width, inner)
        if is_gemma:
            yield f"{block}.attn_q_norm.weight", ones(width // plan.heads)
            yield f"{block}.attn_k_norm.weight", ones(width // plan.heads)
            yield f"{block}.post_attention_norm.weight", ones(width)
            yield f"{block}.post_ffw_norm.weight", ones(width)
