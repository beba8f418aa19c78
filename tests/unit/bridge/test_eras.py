"""Which era a message speaks."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import version as sdk

from muniment.bridge.eras import (
    BARE_ERA,
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    SUPPORTED_VERSIONS,
    Era,
    era_of,
    require_known,
    shake_hands,
)
from muniment.bridge.framing import Refusal

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"

LEGACY = Era("2025-03-26", {"name": "c", "version": "1"})


def test_versions_are_those_of_the_sdk() -> None:
    assert sorted(HANDSHAKE_VERSIONS) == sorted(sdk.HANDSHAKE_PROTOCOL_VERSIONS)
    assert (MODERN_VERSION,) == sdk.MODERN_PROTOCOL_VERSIONS
    assert list(SUPPORTED_VERSIONS) == sorted(sdk.KNOWN_PROTOCOL_VERSIONS, reverse=True)
    assert BARE_ERA.version == sdk.LATEST_HANDSHAKE_VERSION


@pytest.mark.parametrize(
    ("requested", "settled"),
    [*((version, version) for version in HANDSHAKE_VERSIONS)]
    + [(odd, "2025-11-25") for odd in ("2026-07-28", "2024-10-07", "1999", "", "x")],
)
def test_handshakes_settle_a_version(requested: str, settled: str) -> None:
    assert shake_hands({"protocolVersion": requested}).version == settled


def test_handshakes_need_a_version_and_nothing_else() -> None:
    with pytest.raises(Refusal, match="protocolVersion") as refused:
        shake_hands({"protocolVersion": 3})
    assert refused.value.code == -32602
    assert shake_hands({"protocolVersion": "2025-06-18", "clientInfo": "me"}).client is None
    info = {"name": "n", "version": "v", "title": "t"}
    shaken = shake_hands({"protocolVersion": "2025-06-18", "clientInfo": info})
    assert shaken.client == {"name": "n", "version": "v"}


@pytest.mark.parametrize(
    "params", [{}, {"_meta": None}, {"_meta": {}}, {"_meta": {"progressToken": 1}}]
)
def test_without_an_envelope_it_is_the_handshakes(params: dict[str, Any]) -> None:
    assert era_of(params, LEGACY) is LEGACY


def test_an_envelope_is_modern_whatever_was_shaken() -> None:
    meta = {VERSION: MODERN_VERSION, CAPABILITIES: {}, CLIENT: {"name": "n", "version": "v"}}
    for handshake in (BARE_ERA, LEGACY):
        era = era_of({"_meta": meta}, handshake)
        assert era.is_modern
        assert era.client == {"name": "n", "version": "v"}
    assert era_of({"_meta": {VERSION: MODERN_VERSION, CAPABILITIES: {}}}, LEGACY).client is None


@pytest.mark.parametrize(
    ("meta", "code", "mentions"),
    [
        ([], -32602, "_meta"),
        ({VERSION: MODERN_VERSION}, -32602, CAPABILITIES),
        ({VERSION: "2027-01-01"}, -32602, CAPABILITIES),
        ({VERSION: MODERN_VERSION, CAPABILITIES: 1}, -32602, CAPABILITIES),
        ({VERSION: None, CAPABILITIES: {}}, -32602, VERSION),
        ({VERSION: "2025-11-25", CAPABILITIES: {}}, -32022, "version"),
    ],
)
def test_wrong_envelopes_are_refused(meta: object, code: int, mentions: str) -> None:
    with pytest.raises(Refusal, match=mentions) as refused:
        era_of({"_meta": meta}, LEGACY)
    assert refused.value.code == code


def test_methods_belong_to_eras() -> None:
    relayed = frozenset({"tools/call", "resources/subscribe", "subscriptions/listen"})
    modern = Era(MODERN_VERSION, None)
    for method, era in (
        ("tools/call", modern),
        ("tools/call", LEGACY),
        ("subscriptions/listen", modern),
        ("resources/subscribe", LEGACY),
    ):
        require_known(method, era, relayed)
    for method, era in (
        ("ping", modern),
        ("resources/subscribe", modern),
        ("subscriptions/listen", LEGACY),
        ("tools/frobnicate", LEGACY),
        ("x" * 1000, modern),
    ):
        with pytest.raises(Refusal) as refused:
            require_known(method, era, relayed)
        assert refused.value.code == -32601
        assert len(refused.value.text) < 200
