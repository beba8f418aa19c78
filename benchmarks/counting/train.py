"""Trains what kit.counting counts with, and writes it there: `scripts/train-tokenizer`.

Three steps, all of them repeatable to the byte with the same packages and libraries.

1. The words of the `vocabulary` texts, weighted so that each kind of text has its share, become a
   unigram model of sentencepiece.
2. It cuts the `weights` texts, and each piece gets what it costs on average in the vocabularies of
   present-day models. Those texts are others than the first: the words of its own texts a
   vocabulary knows too well, and would count too few pieces for those of everybody else.
3. Both are written, the weights as a byte for each piece.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from benchmarks.counting.packages import Package, fetch, members
from benchmarks.counting.sources import SOURCES, WORDS
from benchmarks.counting.texts import turns
from benchmarks.counting.vocabularies import VOCABULARIES, byte_costs
from benchmarks.tables import table
from muniment.kit import counting

_PIECES = 24_000
_SHARES = {"prose": 30, "code": 35, "json": 5, "latin": 10, "scripts": 12, "cjk": 6}
_WORDS_SHARE = 2
_SCALE = 1_000_000
"""Occurrences of words that a share of one stands for."""
_TURN_CHARACTERS = 4000
_LONGEST_WORD_CHARACTERS = 60
"""Of ASCII: longer ones are data."""
_LONGEST_RUN_CHARACTERS = 400
_RARE_WORD = 20
"""Listed words that come less often are left out."""
_PRIOR = 5
"""A piece is believed to cost what its class does until it was seen about so often."""

_SPACE = "\u2581"
_INDENTS = (*range(1, 17), 20, 24, 28, 32)
_WHITE_SPACE = (
    *(_SPACE * width for width in _INDENTS[1:]),
    *("\n" * lines for lines in range(1, 5)),
    *("\n" + _SPACE * width for width in _INDENTS),
    *("\n" + "\t" * width for width in range(1, 7)),
    *("\t" * width for width in range(1, 5)),
    "\r\n",
    "\r\n\r\n",
)
"""Runs that are one piece each, since no training text teaches them: it comes word by word."""

_README = """\
# What tokens are estimated by

Made by `scripts/train-tokenizer` with sentencepiece {sentencepiece}, for `kit/counting.py`. Not
edited by hand.

- `{tokenizer}.model`: a unigram model of sentencepiece with {pieces} pieces. It holds words and
  parts of words, with how often they come, and no text.
- `{tokenizer}.weights`: a byte for each piece, what it costs on average in the vocabularies
  {vocabularies}, in {steps}ths of a token. Nothing else of those is in it.

Both are under the licence of this project. They were made of documentation, code, data and
catalogues of messages of these packages, which are licensed freely:

{packages}
"""

_WORD = re.compile(r" ?\S+")
_CLASSES = (
    ("kana", re.compile("[\u3040-\u30ff]")),
    ("han", re.compile("[\u3400-\u9fff]")),
    ("hangul", re.compile("[\uac00-\ud7af]")),
    ("digits", re.compile("[0-9]")),
    ("letters", re.compile("[A-Za-z]")),
    ("ascii", re.compile(r"[\x21-\x7e]")),
)


def count_words() -> dict[str, int]:
    """How often each word is to come in the training text; spaces before words are part of them."""
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for source in SOURCES["vocabulary"]:
        for turn in turns(source, _TURN_CHARACTERS):
            for word in _WORD.findall(turn.text):
                if len(word) <= _LONGEST_WORD_CHARACTERS or not word.isascii():
                    for start in range(0, len(word), _LONGEST_RUN_CHARACTERS):
                        by_kind[turn.kind][word[start : start + _LONGEST_RUN_CHARACTERS]] += 1
    package, path = WORDS
    (listed,) = (content for name, content in members(fetch(package)) if name == path)
    for line in listed.decode().splitlines():
        word, times, _ = line.split(" ")
        if int(times) >= _RARE_WORD:
            by_kind["words"][word] = int(times)
    total: Counter[str] = Counter()
    for kind, share in {**_SHARES, "words": _WORDS_SHARE}.items():
        counted = by_kind[kind]
        characters = sum(len(word) * often for word, often in counted.items())
        for word, often in counted.items():
            total[word] += often * share * _SCALE // characters
    return {word: often for word, often in sorted(total.items()) if often}


def train(words: dict[str, int]) -> bytes:
    """The model of so many pieces that tells the words in the fewest bits."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        # Names of files become part of the model.
        os.chdir(folder)
        try:
            Path("words.tsv").write_text(
                "".join(f"{w.replace(' ', _SPACE)}\t{often}\n" for w, often in words.items())
            )
            sentencepiece.SentencePieceTrainer.train(
                input="words.tsv",
                input_format="tsv",
                model_prefix="muniment",
                model_type="unigram",
                vocab_size=_PIECES,
                seed_sentencepiece_size=400_000,
                character_coverage=0.9997,
                byte_fallback=True,
                split_by_number=True,
                user_defined_symbols=list(_WHITE_SPACE),
                normalization_rule_name="identity",
                add_dummy_prefix=False,
                remove_extra_whitespaces=False,
                max_sentence_length=5000,
                bos_id=-1,
                eos_id=-1,
                num_threads=1,
                minloglevel=2,
            )
            return Path("muniment.model").read_bytes()
        finally:
            os.chdir(before)


def weigh(model: bytes) -> bytes:
    """What each piece costs, in steps of a token's `WEIGHT_STEPS`th part."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = range(processor.vocab_size())
    shown = [processor.id_to_piece(piece).replace(_SPACE, " ") for piece in pieces]
    is_byte = [processor.is_byte(piece) for piece in pieces]
    lengths = np.array(
        [1 if byte else len(text.encode()) for text, byte in zip(shown, is_byte, strict=True)]
    )
    # It never comes, since bytes stand in for what no piece has.
    lengths[processor.unk_id()] = 0
    costs, times = np.zeros(len(shown)), np.zeros(len(shown))
    for source in SOURCES["weights"]:
        for turn in turns(source, _TURN_CHARACTERS):
            _add_costs(turn.text, processor, lengths, costs, times)
    classes = ["byte" if byte else _class_of(t) for t, byte in zip(shown, is_byte, strict=True)]
    of_class = {
        name: costs[rows].sum() / max(times[rows].sum(), 1.0)
        for name in sorted(set(classes))
        for rows in [np.array([one == name for one in classes])]
    }
    priors = np.array([of_class[name] or 1.0 for name in classes])
    found = (costs + _PRIOR * priors) / (times + _PRIOR)
    # No byte is more than a token.
    found = np.minimum(found, lengths)
    steps = np.clip(np.rint(found * counting.WEIGHT_STEPS), 0, 255)
    return bytes(steps.astype(np.uint8))


def _add_costs(
    text: str,
    processor: sentencepiece.SentencePieceProcessor,
    lengths: NDArray[np.int64],
    costs: NDArray[np.float64],
    times: NDArray[np.float64],
) -> None:
    by_byte = byte_costs(text)
    if by_byte is None:
        return
    found = np.array(processor.encode(text))
    ends = np.cumsum(lengths[found])
    if ends[-1] != len(by_byte):
        return
    until = np.concatenate([[0.0], np.cumsum(by_byte)])
    np.add.at(costs, found, until[ends] - until[ends - lengths[found]])
    np.add.at(times, found, 1.0)


def _class_of(piece: str) -> str:
    """A name for pieces that cost much the same: by letters, length, and a space before it."""
    text = piece.strip()
    if not text:
        return f"white space {min(len(piece), 3)}"
    kind = next((name for name, letter in _CLASSES if letter.match(text)), "other")
    return f"{kind} {min(len(text), 8)} {text == piece}"


def provenance() -> str:
    """What it was made of, for whoever finds the files."""
    used: dict[Package, set[str]] = {WORDS[0]: {"vocabulary"}}
    for part in ("vocabulary", "weights"):
        for source in SOURCES[part]:
            assert source.package is not None
            used.setdefault(source.package, set()).add(part)
    rows = [
        (one.name, one.version, one.licence, " ".join(sorted(parts)))
        for one, parts in sorted(used.items(), key=lambda entry: entry[0].name)
    ]
    return _README.format(
        tokenizer=counting.TOKENIZER,
        sentencepiece=version("sentencepiece"),
        pieces=_PIECES,
        steps=counting.WEIGHT_STEPS,
        vocabularies=", ".join(VOCABULARIES),
        packages=table(("package", "version", "licence", "read for"), rows),
    )


def main() -> None:
    """Train, weigh, write."""
    folder = Path(counting.__file__).parent / counting.DATA_FOLDER
    model = train(count_words())
    weights = weigh(model)
    folder.mkdir(exist_ok=True)
    (folder / f"{counting.TOKENIZER}.model").write_bytes(model)
    (folder / f"{counting.TOKENIZER}.weights").write_bytes(weights)
    (folder / "README.md").write_text(provenance())
    print(f"{folder}: {len(model)} and {len(weights)} bytes")


if __name__ == "__main__":
    main()
