"""Counts the tokens of a JSON array of texts on standard input by a real server of a GGUF file."""

from __future__ import annotations

import json
import sys

import httpx
import xllamacpp

__all__ = ["main"]


def main() -> None:
    """Serve the model that the argument names, ask for each text, print the counts."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 256
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    counts = []
    with httpx.Client(base_url=server.listening_address, timeout=60) as client:
        for text in json.load(sys.stdin):
            request = {"content": text, "add_special": False, "parse_special": False}
            answer = client.post("/tokenize", json=request).raise_for_status()
            counts.append(len(answer.json()["tokens"]))
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
