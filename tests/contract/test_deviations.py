"""The table of deviations is told to people, and is of cases that there are."""

from __future__ import annotations

import re

import pytest

from tests.contract.comparing import EXTRA_KEYS
from tests.contract.deviations import DEVIATIONS
from tests.contract.transcripts import GROUPS, cases_of, folder
from tests.support.tools import ROOT

DOCUMENT = re.sub(r"\s+", " ", (ROOT / "docs" / "deviations.md").read_text())


@pytest.mark.parametrize("reason", sorted({one.documented for one in DEVIATIONS.values()}))
def test_every_reason_is_documented(reason: str) -> None:
    assert reason in DOCUMENT


@pytest.mark.parametrize("key", sorted(EXTRA_KEYS))
def test_every_key_that_we_add_is_documented(key: str) -> None:
    assert f"`{key}`" in DOCUMENT


def test_every_entry_differs_and_is_of_a_case() -> None:
    assert all(one.paths for one in DEVIATIONS.values())
    if folder() is None:
        pytest.skip("there are no transcripts")
    cases = {(group, case.name) for group in GROUPS for case in cases_of(group)}
    assert DEVIATIONS.keys() <= cases
