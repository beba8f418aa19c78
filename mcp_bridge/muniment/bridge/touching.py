"""What a request reads and writes, as far as the order of calls goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.bridge.catalogue import Catalogue
from muniment.bridge.lanes import Resource
from muniment.bridge.resources import find_resource
from muniment.kit.errors import MunimentError

__all__ = ["touched"]

_Touched = tuple[frozenset[Resource], frozenset[Resource]]
_NOTHING: _Touched = frozenset(), frozenset()


def touched(catalogue: Catalogue, profile: str, method: str, params: Mapping[str, Any]) -> _Touched:
    """What the request reads, and what it writes; nothing, where it is none that we know."""
    if method == "tools/call" and isinstance(params.get("name"), str):
        arguments = params.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        tool = catalogue.find(params["name"], profile, given)
        return _NOTHING if tool is None else (tool.reads, tool.writes)
    if method == "resources/read" and isinstance(params.get("uri"), str):
        try:
            found = find_resource(params["uri"])
        except MunimentError:
            found = None
        return _NOTHING if found is None else (found[0].reads, frozenset())
    return _NOTHING
