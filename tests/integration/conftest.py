"""One house for the tests that leave it up, each in a project of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.house import House, a_house


@pytest.fixture(scope="session")
def common_house() -> Iterator[House]:
    """A house that is up."""
    with a_house() as house:
        house.must("up")
        yield house
