"""Which revision of MCP a message speaks, decided for each message by itself.

A client may probe with the modern era and then shake hands in the older one, on the same pipe,
and go on to mix the two: nothing that one message says closes the other era.
"""

from __future__ import annotations

from muniment.bridge.framing import INVALID_PARAMS, METHOD_NOT_FOUND, Refusal

__all__ = [
    "BARE_ERA",
    "HANDSHAKE_VERSIONS",
    "MODERN_VERSION",
    "SUBSCRIPTIONS_LIMIT",
    "SUPPORTED_VERSIONS",
    "Era",
    "era_of",
    "require_known",
    "shake_hands",
]

MODERN_VERSION = "2026-07-28"
HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
SUPPORTED_VERSIONS = (MODERN_VERSION, *HANDSHAKE_VERSIONS)
"""Newest first."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"

UNSUPPORTED_VERSION = -32022

SUBSCRIPTIONS_LIMIT = 256
"""Resources to which one connection or session of the older era may subscribe."""

_ONLY_HANDSHAKE = frozenset({"ping", "resources/subscribe", "resources/unsubscribe"})
_ONLY_MODERN = frozenset({"server/discover", "subscriptions/listen"})
_NAME_SHOWN_CHARACTERS = 100


class Era:
    """The revision that a message is to be answered in, and who says to have sent it."""

    __slots__ = ("client", "version")

    def __init__(self, version: str, client: dict[str, str] | None) -> None:
        self.version = version
        self.client = client
        """Name and version, unverified."""

    @property
    def is_modern(self) -> bool:
        """Whether results carry the envelope of the stateless protocol."""
        return self.version == MODERN_VERSION


BARE_ERA = Era(HANDSHAKE_VERSIONS[0], None)
"""What a client speaks that has said nothing about it."""


def shake_hands(params: dict[str, object]) -> Era:
    """The era that an `initialize` settles: the version asked for, else our newest.

    Raises:
        Refusal: No version is asked for.
    """
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise Refusal(INVALID_PARAMS, "Invalid params: protocolVersion must be a string")
    version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
    return Era(version, _client(params.get("clientInfo")))


def era_of(params: dict[str, object], handshake: Era) -> Era:
    """The era of any request but `initialize`: by its envelope, else that of the handshake.

    Raises:
        Refusal: The envelope is incomplete, or names a version that is not spoken here.
    """
    envelope = params.get("_meta")
    if envelope is None:
        return handshake
    if not isinstance(envelope, dict):
        raise Refusal(INVALID_PARAMS, "Invalid params: _meta must be an object")
    if VERSION_KEY not in envelope:
        return handshake
    if CAPABILITIES_KEY not in envelope:
        raise Refusal(INVALID_PARAMS, f"Invalid params: _meta lacks {CAPABILITIES_KEY}")
    requested = envelope[VERSION_KEY]
    if not isinstance(requested, str):
        raise Refusal(INVALID_PARAMS, f"Invalid params: {VERSION_KEY} must be a string")
    if requested != MODERN_VERSION:
        raise Refusal(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            data={"supported": list(SUPPORTED_VERSIONS), "requested": requested},
        )
    if not isinstance(envelope[CAPABILITIES_KEY], dict):
        raise Refusal(INVALID_PARAMS, f"Invalid params: {CAPABILITIES_KEY} must be an object")
    return Era(MODERN_VERSION, _client(envelope.get(CLIENT_KEY)))


def require_known(method: str, era: Era, relayed: frozenset[str]) -> None:
    """Refuse a method that this era does not have, or that nobody here answers.

    Args:
        method: The method of a request that the front has no answer to.
        era: The request's era.
        relayed: What the worker answers.

    Raises:
        Refusal: The method is unknown.
    """
    if method == "server/discover":
        raise Refusal(INVALID_PARAMS, "Invalid params: request _meta is missing")
    elsewhere = _ONLY_HANDSHAKE if era.is_modern else _ONLY_MODERN
    if method in elsewhere or method not in relayed:
        shown = method[:_NAME_SHOWN_CHARACTERS]
        raise Refusal(METHOD_NOT_FOUND, f"Method not found: {shown}", data=shown)


def _client(info: object) -> dict[str, str] | None:
    if not isinstance(info, dict):
        return None
    name, version = info.get("name"), info.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    return {"name": name, "version": version}
