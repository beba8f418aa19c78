"""How an expression is written down as a chain of names, the same in every language.

`CodeMentions` of the store's contract says what a chain looks like. It is read from the text of
the expression, which is much cheaper than from its nodes: brackets are passed over, and texts are
masked already.
"""

from __future__ import annotations

import re

from muniment.code.limits import CHAIN_LIMIT_CHARACTERS
from muniment.code.source import Source

__all__ = ["NO_NAME", "Chains", "chain_of_type"]

NO_NAME = "?"
TEXT = "''"

_ROUGH_LIMIT_CHARACTERS = 4 * CHAIN_LIMIT_CHARACTERS
_PLAIN = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[A-Za-z_\x80-\xff][\w\x80-\xff]*)*")
_TOKEN = re.compile(
    rb"(?P<space>\s+)"
    rb"|(?P<name>[@$]*[A-Za-z_\x80-\xff][\w$\x80-\xff]*)"
    rb"|(?P<dot>\?\.|!!?\.|->|::|&\.|[.:\\])"
    rb"|(?P<open>[(\[{])"
    rb"|(?P<text>\")"
    rb"|(?P<generics><)"
    rb"|(?P<sign>[&*!?~])"
)
_INSTANCE = re.compile(r"@+")
_ANGLE = re.compile(rb"[<>(){};]")


class Chains:
    """Reads chains of one file."""

    def __init__(
        self,
        source: Source,
        prefixes: frozenset[bytes] = frozenset(),
        passed_over: re.Pattern[str] | None = None,
        maker: str = "",
    ) -> None:
        """`prefixes`, `passed_over` and `maker` as in `Rules`."""
        self._passed_over = passed_over
        self._made = re.compile(rf"\.{maker}(?:\(\))?(?=\.|$)") if maker else None
        self._source = source
        self._prefixes = prefixes
        self._known: dict[int, tuple[int, str]] = {}

    def chain(self, start: int, end: int) -> str:
        """The chain of the expression there; `?` where it has none.

        Expressions that begin at one place are to be asked for from the shortest on: what one is
        the beginning of the other is not read twice.
        """
        plain = _PLAIN.fullmatch(self._source.masked, start, end)
        if plain is not None and self._made is None:
            text = self._source.masked[start:end].decode(errors="replace")
            return text if len(text) <= CHAIN_LIMIT_CHARACTERS else _shortened(text)
        at, chain = self._known.get(start, (start, ""))
        if at > end:
            at, chain = start, ""
        chain = self._read(at, end, chain)
        if self._passed_over is not None:
            chain = self._passed_over.sub("", chain)
        self._known[start] = (end, chain)
        if self._made is not None:
            chain = self._made.sub("()", chain)
        chain = _shortened(chain)
        return chain or NO_NAME

    def _read(self, at: int, end: int, chain: str) -> str:
        masked = self._source.masked
        after_dot = False
        while at < end:
            token = _TOKEN.match(masked, at, end)
            if token is None:
                return NO_NAME
            if len(chain) > _ROUGH_LIMIT_CHARACTERS:
                chain = _shortened(chain)
            kind, begins, at = token.lastgroup, at, token.end()
            if kind == "name":
                word = token.group()
                if not chain and word in self._prefixes:
                    continue
                if chain and not after_dot:
                    return NO_NAME
                name = word.lstrip(b"$").decode(errors="replace")
                # A variable of the instance, or of its class.
                name = _INSTANCE.sub("self.", name)
                chain, after_dot = (f"{chain}.{name}" if chain else name), False
            elif kind == "dot":
                after_dot = bool(chain)
            elif kind == "text":
                at = self._source.text_ends.get(begins, at)
                # A name right before it is a prefix, such as `f`.
                chain = TEXT if not chain or chain.isidentifier() else NO_NAME
            elif kind == "open":
                at, chain = self._pass_brackets(begins, end, chain, after_dot)
            elif kind == "generics":
                passed = self._pass_generics(begins, end)
                if passed is None:
                    return NO_NAME
                at, after_dot = passed, False
        return NO_NAME if after_dot else chain

    def _pass_brackets(self, at: int, end: int, chain: str, after_dot: bool) -> tuple[int, str]:
        closing = self._source.closing(at)
        if closing is None or closing >= end:
            return end, NO_NAME
        is_round = self._source.masked[at : at + 1] == b"("
        if not chain and is_round:
            inner = _PLAIN.fullmatch(self._source.masked, at + 1, closing)
            return closing + 1, inner.group().decode(errors="replace") if inner else NO_NAME
        is_call = is_round or self._source.masked[at : at + 1] == b"{"
        if chain and is_call and not after_dot:
            return closing + 1, chain if chain == NO_NAME else chain + "()"
        return closing + 1, NO_NAME

    def _pass_generics(self, at: int, end: int) -> int | None:
        depth = 0
        for mark in _ANGLE.finditer(self._source.masked, at, min(end, at + 1000)):
            sign = mark.group()
            if sign == b"<":
                depth += 1
            elif sign == b">":
                depth -= 1
                if not depth:
                    return mark.end()
            elif sign in b"{};":
                return None
        return None


def _shortened(chain: str) -> str:
    if len(chain) <= CHAIN_LIMIT_CHARACTERS:
        return chain
    return f"{NO_NAME}.{chain.rsplit('.', 1)[-1][-CHAIN_LIMIT_CHARACTERS + 2 :]}"


_BEFORE_TYPE = re.compile(
    r"""(?:&\s*'\w+\s|[&*?:\\\s"']"""
    r"|(?:mut|const|dyn|impl|readonly|final|struct|class|enum|inout|out|ref)\b)+"
)
_GENERIC = re.compile(r"([\w.:\\]+?)(?:::)?\s*[\[<](.*)[\]>]", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::|\\)[^\W\d]\w*)*")
_NOTHING = frozenset({"None", "null", "undefined", "nil", "void", "NoneType"})
_UNWRAPPING_LIMIT = 8


def chain_of_type(text: str, wrappers: frozenset[str]) -> str:
    """The chain of a declared type, or of what it wraps; empty where it is none or several.

    `wrappers` are generic types whose members are those of their first argument, as far as a
    reader of the code is concerned: `Optional[Foo]` is `Foo`.
    """
    for _ in range(_UNWRAPPING_LIMIT):
        before = _BEFORE_TYPE.match(text)
        text = (text[before.end() :] if before else text).rstrip("&*?!\"' \t\r\n")
        parts = [part for part in _split(text, "|") if part.strip() not in _NOTHING]
        if len(parts) != 1:
            return ""
        if parts[0] != text:
            text = parts[0]
            continue
        if _NAME.fullmatch(text):
            return "" if text in _NOTHING else text.replace("::", ".").replace("\\", ".")
        generic = _GENERIC.fullmatch(text)
        if generic is None:
            return ""
        outer = generic.group(1)
        if re.split(r"\W+", outer)[-1] not in wrappers:
            return outer.replace("::", ".").replace("\\", ".") if _NAME.fullmatch(outer) else ""
        text = _split(generic.group(2), ",")[0]
    return ""


def _split(text: str, separator: str) -> list[str]:
    """The parts of a type that no brackets hold together."""
    if separator not in text:
        return [text]
    parts, depth, begins = [], 0, 0
    for at, sign in enumerate(text):
        if sign in "[(<{":
            depth += 1
        elif sign in "])>}":
            depth -= 1
        elif sign == separator and not depth:
            parts.append(text[begins:at])
            begins = at + 1
    return [*parts, text[begins:]]
