"""Exact token counts: many texts in one question, and never counted twice.

llama-server tokenizes a row of texts and ready tokens as it stands, each text by itself. A token
that no vocabulary has parts the texts in the answer. A text of ours goes first: its tokens tell
which tokenizer it is that answers, in the same answer.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.slots.addresses import ServerAddress
from muniment.slots.failures import NotUnderstood
from muniment.slots.limits import TOKEN_CACHE_TEXTS
from muniment.slots.llama import LlamaServer

__all__ = ["Counted", "TokenCounter"]

_PART = -1
"""Stands between texts: ids of tokens begin at 0."""

_SAMPLE = (
    "The quick brown fox jumps over 13 lazy dogs; don't panic!\n\tdef f(x: int) -> str:\n"
    '        return f"{x:>8}" if x != 0 else "none"  # λ → ∞\n'
    '{"key": [1, 2.5e-3, true, null], "nested": {"a_b": "C:\\\\d"}}\n'
    "Größe, naïve façade, żółć, Ελληνικά, Русский текст, עברית, العربية, हिन्दी, ไทย\n"
    "漢字とかな交じり文。한국어 문장입니다。繁體中文，简体中文\n🦊👩‍💻🇨🇭 e\u0301 \u200b\ufeff\n"
    "<s></s><|im_start|><|endoftext|>[INST]    \r\n\r\n0123456789 AbstractFactoryBean snake_case"
)

_DIGITS = 12


@dataclass(frozen=True)
class Counted:
    """Counts of texts, and whose tokenizer counted."""

    counts: list[int]
    tokenizer: str


class TokenCounter:
    """Counts by one server's tokenizer."""

    def __init__(self, address: ServerAddress, server: LlamaServer) -> None:
        self._address = address
        self._server = server
        self._known: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._takes_rows = True

    async def count(self, texts: Sequence[str]) -> Counted:
        """Counts of the texts, each as it would stand in a prompt.

        Raises:
            MunimentError: The server does not answer.
        """
        keys = [_digest(text) for text in texts]
        # Which tokenizer answers is only known with the answer; most often it is the last one's.
        counted = await self._ask([])
        while True:
            tokenizer = counted.tokenizer
            missing = {
                key: text
                for key, text in zip(keys, texts, strict=True)
                if (tokenizer, key) not in self._known
            }
            if not missing:
                break
            counted = await self._ask(list(missing.values()))
            for key, count in zip(missing, counted.counts, strict=True):
                self._known[counted.tokenizer, key] = count
            if counted.tokenizer == tokenizer:
                break
        found = [self._known[tokenizer, key] for key in keys]
        for key in keys:
            self._known.move_to_end((tokenizer, key))
        while len(self._known) > max(TOKEN_CACHE_TEXTS, len(keys)):
            self._known.popitem(last=False)
        return Counted(found, tokenizer)

    async def count_prompt(self, prompt: str) -> Counted:
        """The count of a whole prompt: with the tokens that begin and end it."""
        before = (await self.count([])).tokenizer
        tokens = await self._server.tokenize(prompt, special=True)
        if (await self.count([])).tokenizer != before:
            raise self._swapped()
        return Counted([len(tokens)], before)

    async def _ask(self, texts: Sequence[str]) -> Counted:
        # Each count begins without texts, which finds out anew whether rows are taken.
        if self._takes_rows or not texts:
            row: list[str | int] = []
            for text in (_SAMPLE, *texts):
                row += (_PART, text)
            tokens = await self._server.tokenize(row, special=False)
            self._takes_rows = _PART in tokens
            if self._takes_rows:
                parts = _parts(tokens)
                if len(parts) != len(texts) + 1:
                    raise NotUnderstood(self._address.url, "/tokenize does not part the texts")
                return Counted([len(part) for part in parts[1:]], _name(parts[0]))
        return await self._ask_singly(texts)

    async def _ask_singly(self, texts: Sequence[str]) -> Counted:
        """For a server that does not part the texts: the sample first and last."""
        before = _name(await self._server.tokenize(_SAMPLE, special=False))
        counts = [len(await self._server.tokenize(text, special=False)) for text in texts]
        after = _name(await self._server.tokenize(_SAMPLE, special=False)) if texts else before
        if before != after:
            raise self._swapped()
        return Counted(counts, before)

    def _swapped(self) -> NotUnderstood:
        return NotUnderstood(self._address.url, "its model was changed while it counted")


def _parts(tokens: Sequence[int]) -> list[list[int]]:
    """The tokens of each text; nothing where they are not parted."""
    parts: list[list[int]] = []
    for token in tokens:
        if token == _PART:
            parts.append([])
        elif not parts:
            return []
        else:
            parts[-1].append(token)
    return parts


def _name(sample: Sequence[int]) -> str:
    digest = hashlib.sha256(",".join(map(str, sample)).encode()).hexdigest()
    return f"llama:{digest[:_DIGITS]}"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
