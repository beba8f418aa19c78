"""What the listed tools cost in a model's window, counted by the o200k tokenizer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from muniment.bridge.catalogue import NAMES, PROFILES
from muniment.bridge.manifest import MANIFEST_PATH, Manifest
from tests.support.tools import node

pytestmark = pytest.mark.timeout(360)

AVERAGE_TOKENS = 110
MOST_TOKENS = 180
SHOWN = ("name", "description", "inputSchema")
"""What a model gets to see."""


def test_tools_stay_within_their_budget() -> None:
    lists = {
        (profile, names): Manifest(MANIFEST_PATH).listed(profile, names, "tools")
        for profile in PROFILES
        for names in NAMES[profile != "context" :]
    }
    texts = [
        json.dumps({name: tool[name] for name in SHOWN}, separators=(",", ":"))
        for tools in lists.values()
        for tool in tools
    ]
    counted = subprocess.run(
        [node(), Path(__file__).with_name("clients") / "count_tokens.mjs"],
        input=json.dumps(texts),
        capture_output=True,
        check=True,
        text=True,
    )
    counts = iter(json.loads(counted.stdout))
    for listed, tools in lists.items():
        table = {tool["name"]: next(counts) for tool in tools}
        assert max(table.values()) <= MOST_TOKENS, (listed, table)
        assert sum(table.values()) / len(table) <= AVERAGE_TOKENS, (listed, table)
