"""What the front answers by itself: the handshake, discovery, ping and the lists.

Everything comes from the manifest, which is made when the package is built. A result is encoded
once for each revision, and is the same to the byte whenever it is asked for again. Only the list
of resources is of the caller's project.
"""

from __future__ import annotations

from muniment.bridge.eras import SUPPORTED_VERSIONS, Era
from muniment.bridge.framing import INVALID_PARAMS, Refusal, encode
from muniment.bridge.manifest import Manifest

__all__ = ["RESOURCES", "Answers"]

SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

RESOURCES = "resources/list"

_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/templates/list": "resource_templates",
}
_MEMBER = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/templates/list": "resourceTemplates",
}

# Revision in which a member of a listed object first appeared.
_SINCE = {
    "_meta": "2025-06-18",
    "icons": "2025-11-25",
    "outputSchema": "2025-06-18",
    "title": "2025-06-18",
}
_SINCE_IN_TOOLS = _SINCE | {"annotations": "2025-03-26"}


class Answers:
    """Answers of one profile in one spelling of names."""

    def __init__(self, manifest: Manifest, profile: str, names: str) -> None:
        self._manifest = manifest
        self._profile = profile
        self._names = names
        self._encoded: dict[tuple[str, str], bytes] = {}

    def result(self, method: str, era: Era, params: dict[str, object]) -> bytes | None:
        """The encoded result, or None where somebody else has to answer.

        Raises:
            Refusal: A list is asked for from a cursor; they come in one page.
            ManifestError: There is no manifest to answer from.
        """
        if method == "ping" and not era.is_modern:
            return b"{}"
        if method in _LISTS:
            if params.get("cursor") is not None:
                raise Refusal(INVALID_PARAMS, "Invalid params: unknown cursor; there is one page")
        elif method != ("server/discover" if era.is_modern else "initialize"):
            return None
        return self._once(method, era)

    def resources(self, era: Era, project_id: str) -> bytes:
        """The encoded list of a project's resources.

        Raises:
            ManifestError: There is no manifest to answer from.
        """
        templates = self._manifest.listed(self._profile, self._names, "resource_templates")
        listed = [
            _as_of(_of_project(template, project_id), era.version, _SINCE) for template in templates
        ]
        return encode(self._stamped(era, RESOURCES, {"resources": listed}))

    def _once(self, method: str, era: Era) -> bytes:
        key = (method, era.version)
        if key not in self._encoded:
            self._encoded[key] = encode(self._make(method, era))
        return self._encoded[key]

    def _make(self, method: str, era: Era) -> dict[str, object]:
        if method == "initialize":
            return self._handshake(era)
        if method == "server/discover":
            result = self._discovery()
        else:
            listed = self._manifest.listed(self._profile, self._names, _LISTS[method])
            since = _SINCE_IN_TOOLS if method == "tools/list" else _SINCE
            result = {_MEMBER[method]: [_as_of(item, era.version, since) for item in listed]}
        return self._stamped(era, method, result)

    def _stamped(self, era: Era, method: str, result: dict[str, object]) -> dict[str, object]:
        """The result with what the modern era adds to each."""
        if not era.is_modern:
            return result
        stamp = {SERVER_INFO_KEY: self._manifest.server_info}
        hint = self._manifest.cache_hint(method)
        return {"resultType": "complete", **result, **hint, "_meta": stamp}

    def _handshake(self, era: Era) -> dict[str, object]:
        return {
            "protocolVersion": era.version,
            "capabilities": self._manifest.capabilities("legacy"),
            "serverInfo": _as_of(self._manifest.server_info, era.version, _SINCE),
            **self._instructions(),
        }

    def _discovery(self) -> dict[str, object]:
        return {
            "supportedVersions": list(SUPPORTED_VERSIONS),
            "capabilities": self._manifest.capabilities("modern"),
            **self._instructions(),
        }

    def _instructions(self) -> dict[str, object]:
        text = self._manifest.instructions(self._profile)
        return {"instructions": text} if text else {}


def _of_project(template: dict[str, object], project_id: str) -> dict[str, object]:
    """The resource that the template is, for the project."""
    rest = {name: value for name, value in template.items() if name != "uriTemplate"}
    return {**rest, "uri": str(template["uriTemplate"]).replace("{project}", project_id)}


def _as_of(item: dict[str, object], version: str, since: dict[str, str]) -> dict[str, object]:
    """The item without what this revision does not know yet."""
    return {
        name: _arguments_as_of(value, version) if name == "arguments" else value
        for name, value in item.items()
        if since.get(name, "") <= version
    }


def _arguments_as_of(arguments: object, version: str) -> object:
    """A prompt's arguments; they have titles of their own."""
    if not isinstance(arguments, list):
        return arguments
    return [_as_of(argument, version, _SINCE) for argument in arguments]
