"""Randomness as it is handed in."""

from __future__ import annotations

import pytest

from muniment.kit.randomness import SystemRandomness


@pytest.mark.parametrize("size_bytes", [0, 1, 10, 64])
def test_it_is_as_long_as_asked(size_bytes: int) -> None:
    assert len(SystemRandomness().token(size_bytes)) == size_bytes


def test_it_differs_each_time() -> None:
    randomness = SystemRandomness()
    assert len({randomness.token(16) for _ in range(100)}) == 100
