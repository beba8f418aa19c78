"""Runs in aider's environment: one repo map of the working folder, and what it took, as JSON."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path

_SHORTEST_CHARACTERS = 4
"""To a token, as aider estimates where it is given no tokenizer."""


class _Model:
    """What a map asks a model."""

    def token_count(self, text: str) -> int:
        return len(text) // _SHORTEST_CHARACTERS


class _Voice:
    """What a map tells, and how it reads files."""

    def read_text(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8", errors="ignore")

    def tool_output(self, *words: object, **ways: object) -> None: ...

    tool_warning = tool_error = tool_output


def main() -> None:
    """Make the map of so many tokens of the files that end so."""
    tokens, ending = int(sys.argv[1]), sys.argv[2]
    repo_map = import_module("aider.repomap").RepoMap
    files = sorted(str(path.resolve()) for path in Path().rglob(f"*{ending}") if path.is_file())
    maker = repo_map(
        map_tokens=tokens,
        root=str(Path().resolve()),
        main_model=_Model(),
        io=_Voice(),
        map_mul_no_files=1,
    )
    began, cpu = time.perf_counter(), time.process_time()
    text = maker.get_repo_map([], files) or ""
    found = {
        "wall": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "characters": len(text),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
