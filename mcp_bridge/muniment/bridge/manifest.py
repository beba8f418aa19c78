"""The manifest: what the bridge offers, written down when the package is built.

Reading it costs milliseconds where asking the worker would cost seconds.
"""

from __future__ import annotations

import json

__all__ = ["MANIFEST_PATH", "Manifest", "ManifestError"]

# No pathlib here: it costs a third of the time to the first answer.
MANIFEST_PATH = __file__.rpartition("/")[0] + "/manifest.json"


class ManifestError(Exception):
    """The manifest is missing or damaged: the installation is."""


class Manifest:
    """The manifest's parts. It is read at the first need, once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._loaded: dict[str, object] | None = None

    @property
    def version(self) -> str:
        """Version of the package."""
        return str(self._part("version"))

    def instructions(self, profile: str) -> str:
        """What the harness may show its model of a profile, possibly nothing."""
        return str(self._object("instructions").get(profile, ""))

    @property
    def server_info(self) -> dict[str, object]:
        """Name, title and version of the server."""
        return self._object("server_info")

    @property
    def relayed_methods(self) -> frozenset[str]:
        """The methods that the worker answers."""
        methods = self._part("methods")
        if not isinstance(methods, list):
            raise self._damaged("methods")
        return frozenset(map(str, methods))

    def capabilities(self, era: str) -> dict[str, object]:
        """The server's capabilities in an era, `modern` or `legacy`."""
        return self._object("capabilities", era)

    def listed(self, profile: str, names: str, kind: str) -> list[dict[str, object]]:
        """The tools, prompts or resource templates of a profile, in their order."""
        items = self._object("profiles", profile, names).get(kind)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self._damaged(f"profiles.{profile}.{names}.{kind}")
        return items

    def cache_hint(self, method: str) -> dict[str, object]:
        """How long and by whom a modern result may be kept: ttlMs and cacheScope."""
        return self._object("cache", method)

    def _object(self, *path: str) -> dict[str, object]:
        value: object = self._part(path[0])
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            raise self._damaged(".".join(path))
        return value

    def _part(self, name: str) -> object:
        if self._loaded is None:
            self._loaded = self._load()
        if name not in self._loaded:
            raise self._damaged(name)
        return self._loaded[name]

    def _load(self) -> dict[str, object]:
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123
                loaded = json.loads(file.read())
        except (OSError, ValueError) as error:
            raise ManifestError(f"{self._path} cannot be read ({error})") from error
        if not isinstance(loaded, dict):
            raise self._damaged("manifest")
        return loaded

    def _damaged(self, what: str) -> ManifestError:
        return ManifestError(f"{self._path} is damaged ({what})")
