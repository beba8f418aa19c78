"""The transcripts, replayed against a house that is up, each for a tenant of its own."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.setups import CAP_BYTES, SETUPS
from tests.contract.transcripts import cases_of
from tests.integration.house import House, a_house
from tests.support.fronts import LEGACY, BridgeProcess

Replayed = tuple[str, list[dict[str, Any]]]
"""The tenant, and the responses of its cases."""

_SECONDS = 60.0

_tenants = itertools.count(1)


@pytest.fixture(scope="session")
def capped_house() -> Iterator[House]:
    """A house that is up, with the reference's cap."""
    with a_house(MUNIMENT_RECORDS_CAP_BYTES=str(CAP_BYTES)) as house:
        house.must("up")
        yield house


@pytest.fixture(scope="session")
def replay(capped_house: House) -> Callable[[str], Replayed]:
    """Replays a transcript, once."""
    done: dict[str, Replayed] = {}

    def replay(group: str) -> Replayed:
        if group not in done:
            done[group] = _replayed(capped_house, group)
        return done[group]

    return replay


def _replayed(house: House, group: str) -> Replayed:
    tenant = f"transcript-{os.getpid()}-{next(_tenants)}"
    environment = {"PATH": os.environ["PATH"], "MUNIMENT_TENANT": tenant}
    with (
        tempfile.TemporaryDirectory(prefix="mu-") as cwd,
        BridgeProcess(
            house.home, Path(cwd), "--profile", "vault", environment=environment
        ) as bridge,
    ):
        bridge.initialize()
        responses = []
        setup = SETUPS.get(group, {})
        for case in cases_of(group):
            for tool, arguments in setup.get(case.index, []):
                bridge.call(tool, era=LEGACY, **arguments)
            call = {"name": case.tool, "arguments": case.arguments}
            number = bridge.send("tools/call", call, era=LEGACY)
            responses.append(bridge.answer(number, seconds=_SECONDS))
    return tenant, responses
