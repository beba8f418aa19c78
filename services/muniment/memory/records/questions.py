"""A question understood: which of its words tell what it is about, and which deny."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from muniment.kit.index.analysis import (
    UNSPACED_CHARACTERS,
    WORD_CHARACTERS,
    query_terms,
    without_marks,
)
from muniment.memory.records.words import (
    asking_words,
    denying_words,
    folded,
    function_words,
    irregular_forms,
    is_tiny,
    language_of,
    light_words,
    request_words,
)

__all__ = ["Denial", "Question", "Weight", "Word", "understand"]

QUERY_LIMIT_CHARACTERS = 4096
"""Of a longer query the rest is not read."""

QUESTION_LIMIT_WORDS = 24

_OPERATORS = frozenset(["AND", "OR", "NOT", "NEAR"])

_WORD = re.compile(rf"[{WORD_CHARACTERS}]+(?:[./:\-'’@+#]+[{WORD_CHARACTERS}]+)*\*?")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})
_TYPOGRAPHY = re.compile(r"[^\w\x00-\x7f]")
_POSSESSIVE = re.compile(r"'s?$")
_CONTRACTED = re.compile(r"^(\w+?)n't$")
_FIELD = re.compile(r"[^\W\d_]+:[^\W\d_]+\*?")
"""`name:alice`, as query languages have it: two words."""
_CONTRACTED_STEMS = {"wo": "will", "ca": "can", "sha": "shall", "ai": "is"}
_ELIDED = re.compile(r"^(?:[dljmnstc]|qu|jusqu|lorsqu|puisqu)'(?=\w{2})", re.IGNORECASE)
_HAN_PARTICLES = (
    "什么时候|什么地方|为什么|是多少|多少钱|怎么样|什么|怎么|怎样|如何|哪里|哪儿|哪个|哪些|哪位|哪|多少|多久|多大|几个|"
    "几点|几|谁的|谁|是否|是|的|了|吗|呢|吧|在|和|与|及|有|我们|你们|他们|我|你|他|她|它|请问|请|告诉|把|被|对|从|到|"
    "这个|那个|这|那|个|很|也|都|就|会|能|可以|要|年|月|日|不|没有|没|无|未|非|别"
)
_JAPANESE_WORDS = "教えて|何時|何|誰|方法|場所|作り方|下さい|今|次|様"
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_UNSPACED = re.compile(rf"[{UNSPACED_CHARACTERS}]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]+")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN_SPLIT = re.compile(_HAN_PARTICLES)
_THAI = re.compile(r"[\u0e00-\u0e7f]")
_THAI_SPLIT = re.compile(
    without_marks(
        "เมื่อไหร่|เมื่อไร|เท่าไหร่|เท่าไร|อย่างไร|ที่ไหน|อะไร|ใคร|ยังไง|ทำไม|"
        "หรือไม่|หรือเปล่า|ไหม|ครับ|ค่ะ|คะ|คือ|ของ|"
        "ทำงาน|ที่|อยู่|เป็น|และ|หรือ|กี่|ใน|จาก|ให้|ได้|ไหน|บ้าง|มี|ไม่"
    )
)
_THAI_DENIAL = re.compile("ไม่(?!$)|ไม่ใช่|ยกเว้น|ปราศจาก")
_JAPANESE_SPLIT = re.compile(_JAPANESE_WORDS)
_HAN_DENIAL = re.compile("没有|不|没|無い|無|无|未|非|別|别")
_JAPANESE_DENIAL = re.compile("ない|なく|なかった|ません|ずに|以外")
_KOREAN_PARTICLE = re.compile(
    "(?:에서는|으로는|에게서|이라는|에서|에게|으로|까지|부터|처럼|보다|마다|이나|이란|하고|은|는|이|가|을|를|의|에|로|와|과|도|만|야)$"
)
_ARABIC = re.compile(r"[\u0621-\u064a]+$")
_ARABIC_CLITIC = re.compile("^(?:وال|بال|كال|فال|لل|ال|و|ب|ل|ف)(?=..)")
_HEBREW_CLITIC = re.compile("^(?:וה|שה|מה|כש|ו|ה|ב|ל|מ|ש|כ)(?=[\u05d0-\u05ea]{2})")
_ORDINAL = re.compile(r"^(\d+)(?:st|nd|rd|th)$")
_DIGIT = re.compile(r"\d")
_PAST = re.compile(r"^[a-z]{3,}ed$")
_GERUND = re.compile(r"^[a-z]{3,}ing$")
_PRONOUNS = frozenset(["i", "you", "we", "they", "he", "she", "it", "who"])
_BE = frozenset(["am", "is", "are", "was", "were", "be", "been", "being"])
_DO = frozenset(["do", "does", "did"])
_MODALS = frozenset(
    ["can", "could", "will", "would", "should", "may", "might", "must", "shall", "to"]
)
_BEFORE_GERUNDS = frozenset(["for", "by", "after", "before", "while", "when", "about", "without"])
_HAVE = frozenset(["have", "has", "had"])


_VERB_ENDINGS = {
    "ru": re.compile(r".{3,}(?:ет|ют|ут|ит|ат|ят|ется|ются|ится|ться|ил|ал|ила|ала|или|али)$"),
    "pl": re.compile(r".{3,}(?:uje|uja|aja|ac|owal|owala|owali|ila|ily)$"),
    "hi": re.compile(r".{2,}(?:ता|ती|ते|ना)$"),
}


class Weight(Enum):
    """How much a word tells."""

    NAME = "name"
    """A name, a number or an identifier: no other word says the same."""
    THING = "thing"
    """What things and their attributes are called."""
    DEED = "deed"
    """What is done, which can be said in many words."""
    LIGHT = "light"
    """What says little; it never keeps a record back."""


@dataclass(frozen=True)
class Word:
    """A telling word of a question."""

    shown: str
    """As it was asked."""
    text: str
    """Folded."""
    weight: Weight
    place: int
    """Among all words of the question, from 0."""
    variants: tuple[str, ...]
    """Terms of which any stands for the word, the word itself first."""
    pieces: tuple[str, ...] = ()
    """Terms that stand for the word together: the pairs of an unspaced run, the parts of a
    compound."""
    begins: bool = False
    """Whether a record's word need only begin so: `ali*`."""
    inflects: bool = True
    """Whether the language writes endings that the index's stems do not know."""


@dataclass(frozen=True)
class Denial:
    """A word that denies, and where it stands."""

    text: str
    place: int
    in_condition: bool
    """Whether it stands after an `if`: then it does not deny what is asked for."""


@dataclass(frozen=True)
class Question:
    """What is asked."""

    words: tuple[Word, ...]
    """The telling words, in order, each once."""
    denials: tuple[Denial, ...]
    function: tuple[str, ...]
    """The words that tell nothing, each once, without the tiny ones and those of a request."""
    significant: int
    """How many words there are but the tiny ones: the telling ones, and those that tell nothing."""
    language: str

    @cached_property
    def ideas(self) -> tuple[tuple[int, ...], ...]:
        """Places in `words` of what a record must have: names of several words, and things."""
        ideas: list[tuple[int, ...]] = []
        for place, word in enumerate(self.words):
            before = self.words[place - 1] if place else None
            is_name = word.weight is Weight.NAME
            if is_name and before and before.weight is Weight.NAME and _adjoin(before, word):
                ideas[-1] = (*ideas[-1], place)
            elif word.weight in (Weight.NAME, Weight.THING):
                ideas.append((place,))
        return tuple(ideas)


def _adjoin(before: Word, word: Word) -> bool:
    return before.place == word.place - 1


@dataclass(frozen=True)
class _Token:
    shown: str
    text: str
    place: int
    is_first: bool
    """Of a sentence."""
    is_asked: bool = True
    """Whether it stands in the query; of a contraction, as `isn't`, that is the denial."""


def understand(query: str) -> Question:
    """Read the query, of which the beginning counts where it is very long."""
    tokens = list(_tokens(_beginning(query)))
    language = language_of(
        (token.text for token in tokens), has_accents=not _without_typography(query).isascii()
    )
    known, denying, light = (
        function_words(language),
        denying_words(language),
        light_words(language),
    )
    shouted = sum(map(_is_shouted, (token.shown for token in tokens))) > len(tokens) / 2
    operators = _operators(tokens)
    words: dict[str, Word] = {}
    function: dict[str, None] = {}
    denials: dict[str, Denial] = {}
    before: list[str] = []
    for at, token in enumerate(tokens):
        if token.place in operators:
            function.setdefault(token.text)
        elif token.text in denying or token.text == "cannot":
            conditional = "if" in before or "unless" in before
            asked = folded(token.shown)
            denials.setdefault(asked, Denial(asked, token.place, conditional))
            function.setdefault(asked)
        elif _tells_nothing(token, known, before):
            if token.is_asked:
                function.setdefault(token.text)
        elif token.text not in words:
            weight = _weight(token, light, language, shouted)
            after = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if weight is Weight.THING and _is_foreign_deed(token, before, language):
                weight = Weight.DEED
            if weight is Weight.THING and language == "en":
                ends = not after or after in known or after in denying
                if _is_deed(token.text, before, words, ends and after not in _HAVE):
                    weight = Weight.DEED
            words[token.text] = _word(token, weight, language)
        before.append(token.text)
    kept = sorted(words.values(), key=_keeping)[:QUESTION_LIMIT_WORDS]
    dropped = [text for text in function if text in denials or not is_tiny(text)]
    return Question(
        words=tuple(sorted(kept, key=lambda word: word.place)),
        denials=tuple(denials.values()),
        function=tuple(text for text in dropped if text not in request_words()),
        significant=min(len(kept) + len(dropped), QUESTION_LIMIT_WORDS),
        language=language,
    )


def _beginning(query: str) -> str:
    """As much of the query as is read, without half a word at its end."""
    if len(query) <= QUERY_LIMIT_CHARACTERS:
        return query
    cut = query[: QUERY_LIMIT_CHARACTERS + 1]
    whole, *rest = cut.rsplit(maxsplit=1)
    return whole if rest else cut[:QUERY_LIMIT_CHARACTERS]


def _operators(tokens: Sequence[_Token]) -> frozenset[int]:
    """Places of a query language's operators: `NOT` alone is a loud denial."""
    found = [token for token in tokens if token.shown in _OPERATORS]
    is_language = any(token.shown != "NOT" for token in found)
    is_loud = all(token.shown.isupper() for token in tokens) and len(found) < len(tokens)
    return frozenset(token.place for token in found if is_language and not is_loud)


def _tells_nothing(token: _Token, known: frozenset[str], before: Sequence[str]) -> bool:
    if _is_slight(token.text):
        return True
    # `what does Alice like`
    is_verb = token.text == "like" and _lacks_verb(before)
    return token.text in known and not _is_month(token) and not is_verb


def _without_typography(query: str) -> str:
    """The query without quotation marks, dashes and the like, which tell no language."""
    return _TYPOGRAPHY.sub("", query)


def _keeping(word: Word) -> tuple[int, int]:
    order = (Weight.NAME, Weight.THING, Weight.DEED, Weight.LIGHT)
    return order.index(word.weight), word.place


def _tokens(query: str) -> Iterator[_Token]:
    place, end = 0, 0
    text = without_marks(query).translate(_APOSTROPHES)
    for found in _WORD.finditer(text):
        between = text[end : found.start()]
        is_first = not end or any(mark in between for mark in ".?!。？！\n")
        end = found.end()
        contracted = _CONTRACTED.match(found[0].casefold())
        if contracted:
            verb = _CONTRACTED_STEMS.get(contracted[1], contracted[1])
            yield _Token(verb, verb, place, is_first, is_asked=False)
            yield _Token(found[0], "not", place + 1, is_first=False)
            place += 2
            continue
        for shown in _split(found[0]):
            yield _Token(shown, folded(shown), place, is_first)
            place, is_first = place + 1, False


def _split(found: str) -> Iterator[str]:
    """The words in what stands between blanks."""
    if _FIELD.fullmatch(found):
        yield from found.split(":")
        return
    elided = _ELIDED.match(found)
    if elided:
        yield found[: elided.end() - 1]
        found = found[elided.end() :]
    found = _POSSESSIVE.sub("", found)
    if "'" in found:
        head, _, tail = found.partition("'")
        # `we'll`, `I'm`: the tail is a function word.
        if tail.casefold() in {"s", "ll", "re", "ve", "d", "m", "t"}:
            found = head
    if _UNSPACED.search(found):
        yield from _runs(found)
    elif found:
        yield found


def _runs(found: str) -> Iterator[str]:
    """The telling parts of a run without blanks, and what denies in it."""
    japanese = _KANA.search(found) is not None
    at = 0
    for run in _UNSPACED.finditer(found):
        if run.start() > at:
            yield found[at : run.start()].strip("./:-'@+#")
        at = run.end()
        if _THAI.search(run[0]):
            denial = _THAI_DENIAL.search(run[0])
            parts = _THAI_SPLIT.sub(" ", run[0])
            yield from (part for part in parts.split() if len(part) > 1)
            if denial and "หรือไม่" not in run[0]:
                yield "ไม่"
            continue
        denial = (_JAPANESE_DENIAL if japanese else _HAN_DENIAL).search(run[0])
        if japanese:
            parts = _JAPANESE_SPLIT.sub(" ", _HIRAGANA.sub(" ", run[0]))
        else:
            parts = _HAN_SPLIT.sub(" ", run[0])
        yield from parts.split()
        if denial:
            yield denial[0]
    rest = found[at:].strip("./:-'@+#")
    if rest:
        yield rest


def _is_slight(text: str) -> bool:
    """Whether it is a letter on its own."""
    return len(text) == 1 and text.isascii() and not text.isdigit()


def _is_month(token: _Token) -> bool:
    return token.shown == "May" and not token.is_first


def _is_shouted(shown: str) -> bool:
    return len(shown) > 1 and shown.isupper()


def _weight(token: _Token, light: frozenset[str], language: str, shouted: bool) -> Weight:
    if _DIGIT.search(token.text) or "@" in token.text or "_" in token.text:
        return Weight.NAME
    capital = token.shown[:1].isupper() and not shouted
    # German writes all nouns so.
    if capital and not token.is_first and language != "de" and token.text not in light:
        return Weight.NAME
    return Weight.LIGHT if token.text in light else Weight.THING


def _is_deed(
    text: str, before: Sequence[str], words: Mapping[str, Word], ends_phrase: bool
) -> bool:
    """Whether an English word stands where a verb stands."""
    last = before[-1] if before else ""
    if _PAST.match(text) or last in _PRONOUNS or last in _MODALS:
        return True
    follows_name = last in words and words[last].weight is Weight.NAME
    if _GERUND.match(text):
        return (
            last in _BE or last in _BEFORE_GERUNDS or (follows_name and not _BE.isdisjoint(before))
        )
    if last == "that":
        return text.endswith("s")
    # `which hotel did Alice book`, `what does the supplier deliver`
    return ends_phrase and last in words and _lacks_verb(before)


def _is_foreign_deed(token: _Token, before: Sequence[str], language: str) -> bool:
    """Whether a word of another language looks like a verb, or stands where one stands."""
    if language == "en" or token.shown[:1].isupper():
        return False
    if language == "de":
        return True  # Its nouns have capitals.
    ending = _VERB_ENDINGS.get(language)
    if ending is not None and ending.match(token.text):
        return True
    return bool(before) and before[-1] in asking_words(language)


def _lacks_verb(before: Sequence[str]) -> bool:
    """Whether a form of `do` waits for its verb: it has none in `what does the machine have`."""
    waiting = False
    for text in before:
        waiting = text in _DO or (waiting and text not in _HAVE)
    return waiting


def _word(token: _Token, weight: Weight, language: str) -> Word:
    text = token.text.rstrip("*")
    variants, pieces = [text], []
    if _UNSPACED.search(text):
        pieces = [a + b for a, b in pairwise(text)] or [text]
        variants = []
    elif _HANGUL.search(text):
        bare = _KOREAN_PARTICLE.sub("", text) if len(text) > 1 else text
        pieces = [a + b for a, b in pairwise(bare)] or [bare]
        variants = []
    elif _ARABIC.match(text):
        bare = _ARABIC_CLITIC.sub("", text)
        variants += [bare, "ال" + bare]
    elif _HEBREW_CLITIC.match(text):
        bare = _HEBREW_CLITIC.sub("", text)
        variants += [bare, "ה" + bare]
    else:
        variants += irregular_forms(text)
        variants += _ORDINAL.findall(text)
        found = query_terms(text)
        # Of an identifier with a number the parts alone are another identifier.
        if len(found) > 1 and not _DIGIT.search(text):
            pieces = [term for term in found if term != text]
        if found and text not in found and not pieces:
            variants = [found[-1]]
    return Word(
        shown=token.shown,
        text=text,
        weight=weight,
        place=token.place,
        variants=tuple(dict.fromkeys(variants)),
        pieces=tuple(dict.fromkeys(pieces)),
        begins=token.text.endswith("*"),
        inflects=language != "en" or not text.isascii(),
    )
