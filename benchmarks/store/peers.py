"""Peers that are measured beside, each in an environment of its own under build/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["tantivy_python"]

_ROOT = Path(__file__).resolve().parent.parent.parent
_PACKAGES = ("tantivy==0.27.0", "PyStemmer>=3.0")


def tantivy_python() -> Path | None:
    """A Python with tantivy, made at first; None where it cannot be had."""
    folder = _ROOT / "build" / "bench-tantivy"
    python = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    steps = (
        [str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [str(uv), "pip", "install", "--quiet", "--python", str(python), *_PACKAGES],
    )
    probe = [str(python), "-c", "import Stemmer, tantivy"]
    try:
        if (
            not python.exists()
            or subprocess.run(probe, check=False, capture_output=True).returncode
        ):
            for step in steps:
                subprocess.run(step, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"tantivy is not measured: {error}", file=sys.stderr)
        return None
    return python
