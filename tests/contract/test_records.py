"""The vault reference's program, call by call: all of its tools but search."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.comparing import differences
from tests.contract.conftest import Replayed
from tests.contract.deviations import DEVIATIONS
from tests.contract.transcripts import Case, group_parameters

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("case", group_parameters(search=False))
def test_the_answer_is_the_reference_s(case: Case, replay: Callable[[str], Replayed]) -> None:
    tenant, responses = replay(case.group)
    response = responses[case.index]
    deviation = DEVIATIONS.get((case.group, case.name))
    expected = sorted(deviation.paths) if deviation else []
    assert differences(case, response, tenant) == expected, response
