"""The lines of a map: a file's path, and below it what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from muniment.code.graph import CodeGraph
from muniment.code.map_nodes import MapNodes
from muniment.code.ranking import Integers
from muniment.kit.printable import printable

__all__ = ["SIGNATURE_LIMIT_CHARACTERS", "MapLines"]

SIGNATURE_LIMIT_CHARACTERS = 100
"""So much of a signature is shown in a map; a query for the symbol has the whole of it."""

_BRACKET_BLANKS = re.compile(r"(?<=[(\[])\s+|,?\s+(?=[)\]])")
"""What a declaration over several lines leaves behind."""

_INDENT = " "
"""Tokenizers join one blank to the word behind it, so that it costs nothing."""


class MapLines:
    """Lines for blocks of nodes, and how many symbols they name."""

    def __init__(self, graph: CodeGraph, nodes: MapNodes, *, names_only: bool) -> None:
        self._graph = graph
        self._nodes = nodes
        self._names_only = names_only
        self._named = set[int]()
        self._written = set[tuple[int, str]]()
        """Lines that stand already, with what they stand in: what is declared twice is shown once,
        and what was shown for the sake of its members is not shown again."""
        self._shown = [0]

    def of(self, blocks: Iterable[Integers]) -> Iterator[str]:
        """The lines of the blocks, one after the other."""
        write = self._names if self._names_only else self._signatures
        for block in blocks:
            yield from write([int(node) for node in block])

    def shown(self, lines: int) -> int:
        """How many symbols the first so many lines name, of those that were asked for."""
        return self._shown[min(lines, len(self._shown) - 1)]

    def _names(self, block: list[int]) -> Iterator[str]:
        for node in block:
            line = printable(self._graph.qualified_name(self._nodes.places[node]))
            if self._is_new(-1, line):
                yield self._counted(line, node)

    def _signatures(self, block: list[int]) -> Iterator[str]:
        # The node of the file stands in for what a symbol at its top stands in.
        path, file = self._nodes.places[block[0]].path, -1 - int(self._nodes.files[block[0]])
        opened: list[int] | None = None
        for node in block:
            above = self._above(node)
            text = self._signature(node)
            if not self._is_new(above[-1] if above else file, text):
                continue
            if opened is None:
                yield self._counted(printable(path), None)
                opened = []
            # What it stands in is repeated, as far as the line above does not stand in it too.
            shared = sum(1 for one, other in zip(above, opened, strict=False) if one == other)
            for depth, outer in enumerate(above[shared:], shared):
                line = self._signature(outer)
                self._is_new(above[depth - 1] if depth else file, line)
                yield self._counted(_INDENT * (depth + 1) + line, outer)
            yield self._counted(_INDENT * (len(above) + 1) + text, node)
            opened = [*above, node]

    def _above(self, node: int) -> list[int]:
        """What the node stands in, the outermost first."""
        above = list[int]()
        while (node := int(self._nodes.parents[node])) >= 0:
            above.append(node)
        return above[::-1]

    def _signature(self, node: int) -> str:
        place = self._nodes.places[node]
        symbol = self._graph.facts(place.path).symbols[place.index]
        text = _BRACKET_BLANKS.sub("", printable(symbol.signature or symbol.name))
        if len(text) > SIGNATURE_LIMIT_CHARACTERS:
            return text[: SIGNATURE_LIMIT_CHARACTERS - 1] + "…"
        return text

    def _is_new(self, within: int, line: str) -> bool:
        """Whether the line does not stand there yet; from now on it does."""
        key = (within, line)
        if key in self._written:
            return False
        self._written.add(key)
        return True

    def _counted(self, line: str, node: int | None) -> str:
        if node is not None:
            self._named.add(node)
        self._shown.append(len(self._named))
        return line
