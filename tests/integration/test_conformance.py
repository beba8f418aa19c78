"""The suite of the protocol's authors, against the bridge's own HTTP stack, for two revisions.

What the product has is tested on the product. All the rest needs tools, prompts and resources of
fixed names: a server of the SDK has them, behind the same stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.outcomes import FIXTURES, OUTCOMES, PRODUCT, VACUOUS
from tests.conformance.serve import SWITCH
from tests.conformance.suite import Run, required
from tests.integration.house import House
from tests.support.http_server import HttpServer, refusal
from tests.support.tools import ROOT

pytestmark = pytest.mark.timeout(600)

REVISIONS = tuple(OUTCOMES)
SIDES = {"product": PRODUCT, "fixtures": FIXTURES}


@dataclass(frozen=True)
class Suite:
    """What the suite found, by revision and side."""

    servers: tuple[HttpServer, HttpServer]
    folder: Path
    runs: dict[tuple[str, int], Run]

    def deviations(self, revision: str, side: int) -> list[str]:
        """Where it did not find what is expected.

        A scenario that deviates runs once more, by itself: several of the suite give a server
        half a second, which a busy machine takes for other things.
        """
        run = self.runs[revision, side]
        found = run.outcomes()
        expected = {name: both[side] for name, both in OUTCOMES[revision].items()}
        told = [f"{name} is expected, and did not run" for name in expected.keys() - found.keys()]
        for name in sorted(found):
            if found[name] != expected.get(name):
                folder = self.folder / f"again-{revision}-{side}-{name}"
                again = Run(self.servers[side].url, revision, folder, name)
                now = again.outcomes()[name]
                if now != expected.get(name):
                    told.append(
                        f"{name}: {now} instead of {expected.get(name, 'nothing')}; "
                        f"{again.complaints(name)}"
                    )
        return told


@pytest.fixture(scope="module")
def suite(common_house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The suite, having run: both sides at once, one revision after the other."""
    folder = tmp_path_factory.mktemp("conformance")
    environment = {
        "MUNIMENT_HOME": str(common_house.home.path),
        "MUNIMENT_KEY_FOLDER": str(common_house.key_folder),
    }
    with ExitStack() as stack:
        product = stack.enter_context(HttpServer(cwd=folder, environment=environment))
        fixtures = stack.enter_context(
            HttpServer(SWITCH, cwd=ROOT, environment={}, module="tests.conformance.serve")
        )
        servers = (product, fixtures)
        runs = {}
        for revision in REVISIONS:
            for side, server in enumerate(servers):
                runs[revision, side] = Run(server.url, revision, folder / f"{revision}-{side}")
            for side in SIDES.values():
                runs[revision, side].outcomes()
        yield Suite(servers, folder, runs)
        assert [server.stop() for server in servers] == [0, 0]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_does_what_is_written_down(suite: Suite, revision: str, side: str) -> None:
    assert suite.deviations(revision, SIDES[side]) == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_whatever_is_required_passes(suite: Suite, revision: str) -> None:
    demanded = required(revision)
    assert demanded
    for name in demanded:
        outcome = OUTCOMES[revision][name][FIXTURES]
        assert "passed" in outcome, name
        assert "failed" not in outcome, name
        assert "warned" not in outcome, name


def test_what_passes_vacuously_is_named() -> None:
    for revision, scenarios in OUTCOMES.items():
        for name, outcomes in scenarios.items():
            reasons = VACUOUS[revision].get(name, (None, None))
            for outcome, reason in zip(outcomes, reasons, strict=True):
                assert reason is None or "failed" not in outcome, name
                silent = "passed" not in outcome or "warned" in outcome
                assert reason is not None or "failed" in outcome or not silent, name


def test_the_product_has_no_such_switch(tmp_path: Path) -> None:
    assert f"unknown argument {SWITCH}" in refusal(SWITCH, cwd=tmp_path, environment={})
