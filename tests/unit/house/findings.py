"""Findings, and who may break which tidy rule and why: short on purpose."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.house.source import tracked_paths

__all__ = ["EXCEPTIONS", "demand_none", "not_excused"]

_LIGHT = "part of the front, which imports the standard library only"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "clock": {
        "services/muniment/kit/clock.py": "the seam itself",
        "services/muniment/kit/supervise.py": _LIGHT,
        "mcp_bridge/muniment/bridge/front.py": _LIGHT,
        "mcp_bridge/muniment/bridge/dialling.py": _LIGHT,
    },
    "randomness": {
        "services/muniment/kit/randomness.py": "the seam itself",
        "mcp_bridge/muniment/bridge/front.py": _LIGHT,
    },
    "file writing": {
        "services/muniment/kit/files.py": "the seam itself",
        "services/muniment/code/reader_process.py": "answers through the pipe that it was given",
        "services/muniment/kit/faults.py": "counts down the file of a test that kills this process",
    },
    "unused name": {
        "mcp_bridge/muniment/bridge/connection.py:_Exchange.send_raw_request": (
            "the MCP SDK's dispatch context has it, and is matched by its members"
        ),
    },
}
"""Rule -> path, or path and qualified name (`a/b.py:Class.method`) -> reason."""


def demand_none(findings: Iterable[str]) -> None:
    """Fail with the findings, one a line.

    Raises:
        AssertionError: There are some.
    """
    __tracebackhide__ = True
    listed = list(findings)
    if listed:
        raise AssertionError("\n".join([f"{len(listed)} finding(s):", *listed]))


def not_excused(rule: str, findings: Iterable[str]) -> list[str]:
    """The findings that no exception covers, and the exceptions that cover none."""
    listed = list(findings)
    excused = EXCEPTIONS.get(rule, {})
    present = [one for one in excused if one.split(":")[0] in tracked_paths()]
    idle = [one for one in present if not any(_covers(one, finding) for finding in listed)]
    left = [finding for finding in listed if not any(_covers(one, finding) for one in excused)]
    return left + [f"{one}: needs no exception from the rule on {rule}" for one in idle]


def _covers(exception: str, finding: str) -> bool:
    path, _, name = exception.partition(":")
    return finding.startswith(f"{path}:") and (not name or name in finding.split())
