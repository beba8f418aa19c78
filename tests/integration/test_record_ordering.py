"""Record calls that are sent without waiting see exactly what was sent before them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.house import House
from tests.support.fronts import LEGACY, MODERN, BridgeProcess

pytestmark = pytest.mark.timeout(240)

PAIRS = 200
MIXED_CALLS = 300


@pytest.fixture
def bridge(common_house: House, tmp_path: Path) -> Iterator[BridgeProcess]:
    environment = {"PATH": os.environ["PATH"], "MUNIMENT_TENANT": f"order-{tmp_path}"[-100:]}
    with BridgeProcess(
        common_house.home, tmp_path, "--profile", "vault", environment=environment
    ) as bridge:
        bridge.initialize()
        yield bridge


def era(number: int) -> str:
    """The eras take turns on the one connection."""
    return (MODERN, LEGACY)[number % 2]


def test_every_read_sees_the_write_before_it_and_none_after(bridge: BridgeProcess) -> None:
    sent = []
    for number in range(PAIRS):
        kind = {"era": era(number)}
        named = {"category": "c", "name": "n"}
        calls = (
            bridge.send_call("memory_remember", **kind, **named, body=number),
            bridge.send_call("memory_recall", **kind, **named),
            bridge.send_call("memory_set_state", **kind, key="k", body=number),
            bridge.send_call("memory_get_state", **kind, key="k"),
        )
        sent.append(calls)
    for number, (remember, recall, set_state, get_state) in enumerate(sent):
        assert bridge.content(remember)["ok"]
        assert bridge.content(recall)["entity"]["body"] == {"value": number}
        assert bridge.content(set_state)["ok"]
        assert bridge.content(get_state)["body"] == {"value": number}


def test_every_search_sees_the_write_before_it(bridge: BridgeProcess) -> None:
    searches = []
    for number in range(PAIRS):
        word = f"window{number // 10}"
        bridge.send_call("memory_remember", category="w", name=f"n{number}", body=word)
        searches.append(bridge.send_call("memory_search", query=word, limit=50, tiers="entity"))
    for number, search in enumerate(searches):
        hits = {hit["key"] for hit in bridge.content(search)["results"]}
        first = number - number % 10
        assert hits == {f"n{one}" for one in range(first, number + 1)}


def test_what_is_forgotten_is_gone_for_the_next_call(bridge: BridgeProcess) -> None:
    rounds = []
    for number in range(PAIRS // 2):
        named: dict[str, Any] = {"category": "f", "name": "n", "era": era(number)}
        rounds.append(
            (
                bridge.send_call("memory_remember", **named, body="forgettable"),
                bridge.send_call("memory_forget", **named),
                bridge.send_call("memory_recall", **named),
                bridge.send_call("memory_list", era=era(number), category="f"),
                bridge.send_call("memory_search", query="forgettable", tiers="entity"),
            )
        )
    for remember, forget, recall, listed, search in rounds:
        assert bridge.content(remember)["ok"]
        assert bridge.content(forget)["ok"]
        assert bridge.result(recall)["isError"]
        assert bridge.content(listed)["count"] == 0
        assert bridge.content(search)["count"] == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_mixed_calls_answer_as_if_asked_one_by_one(bridge: BridgeProcess, seed: int) -> None:
    rng = random.Random(seed)
    kept: dict[str, int] = {}
    expected: list[tuple[int, Any]] = []
    for number in range(MIXED_CALLS):
        name = f"n{rng.randrange(4)}"
        named: dict[str, Any] = {"category": "m", "name": name, "era": era(number)}
        match rng.randrange(4):
            case 0:
                kept[name] = number
                expected.append((bridge.send_call("memory_remember", **named, body=number), True))
            case 1:
                found = kept.pop(name, None) is not None
                expected.append((bridge.send_call("memory_forget", **named), found))
            case 2:
                expected.append((bridge.send_call("memory_recall", **named), kept.get(name, False)))
            case _:
                call = bridge.send_call("memory_list", category="m", era=era(number))
                expected.append((call, sorted(kept)))
    for call, outcome in expected:
        result = bridge.result(call)
        content = result.get("structuredContent", {})
        if isinstance(outcome, bool):
            assert result["isError"] is not outcome
        elif isinstance(outcome, list):
            assert sorted(row["name"] for row in content["results"]) == outcome
        else:
            assert content["entity"]["body"] == {"value": outcome}
