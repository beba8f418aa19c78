"""Facts of code files, written down by hand."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.v1.code_pb2 import EdgeKind, SymbolKind
from muniment.v1.store_pb2 import CodeFacts

__all__ = ["Facts"]

_KINDS = {name.removeprefix("SYMBOL_KIND_").lower(): number for name, number in SymbolKind.items()}


class Facts:
    """Builds the facts of one file. Scopes are given by the symbol's name, `""` for the file."""

    def __init__(self, package: str = "") -> None:
        self._facts = CodeFacts(package=package)
        self._scopes = {"": 0}
        self._mentions: list[tuple[str, EdgeKind.ValueType, int, int]] = []

    def define(
        self,
        kind: str,
        name: str,
        within: str = "",
        *,
        line: int = 0,
        type_: str = "",
        bases: Iterable[str] = (),
        signature: str = "",
        is_property: bool = False,
        changed_scan: int = 0,
        receiver: str = "",
    ) -> Facts:
        """A symbol; its scope is then called `within.name`."""
        symbols = self._facts.symbols
        symbols.add(
            name=name,
            kind=_KINDS[kind],
            parent=self._scopes[within],
            line=line or len(symbols) + 1,
            type=type_,
            bases=bases,
            signature=signature,
            is_property=is_property,
            changed_scan=changed_scan,
            receiver=receiver,
        )
        self._scopes[f"{within}.{name}" if within else name] = len(symbols)
        return self

    def imports(
        self, module: str, name: str = "", local: str = "", *, within: str = "", line: int = 1
    ) -> Facts:
        """An import; the name `*` takes all."""
        is_star = name == "*"
        self._facts.imports.add(
            module=module,
            name="" if is_star else name,
            local="" if is_star else local or name or module.partition(".")[0],
            is_star=is_star,
            line=line,
            scope=self._scopes[within],
        )
        return self

    def bind(self, name: str, value: str, within: str = "", *, is_type: bool = False) -> Facts:
        """A variable with the chain that made it, or with its type."""
        self._facts.bindings.add(
            scope=self._scopes[within], name=name, value=value, is_type=is_type
        )
        return self

    def call(self, chain: str, within: str = "", *, line: int = 1) -> Facts:
        """A call of the chain."""
        return self.mention("calls", chain, within, line=line)

    def mention(self, kind: str, chain: str, within: str = "", *, line: int = 1) -> Facts:
        """Any other use: `references`, `inherits`, `implements`."""
        number = EdgeKind.Value(f"EDGE_KIND_{kind.upper()}")
        self._mentions.append((chain, number, self._scopes[within], line))
        return self

    def made(self) -> CodeFacts:
        """The facts, with their mentions in columns."""
        facts = CodeFacts()
        facts.CopyFrom(self._facts)
        columns = facts.mentions
        columns.chains.extend(sorted({one[0] for one in self._mentions}))
        places = {chain: place for place, chain in enumerate(columns.chains)}
        columns.chain.extend(places[one[0]] for one in self._mentions)
        columns.kind.extend(one[1] for one in self._mentions)
        columns.scope.extend(one[2] for one in self._mentions)
        columns.line.extend(one[3] for one in self._mentions)
        return facts
