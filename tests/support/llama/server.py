"""A real llama-server as a program of its own, with the flags of llama-server that tests need.

It ends when its standard input does, so that it never outlives the test that started it.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
from pathlib import Path

import xllamacpp

_SOCKET_SUFFIX = ".sock"


def main() -> None:
    """Serve until standard input ends."""
    options = _parser().parse_args()
    if options.max_file_bytes is not None:
        # Stands for a full disk: writing fails with an error instead of a signal.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.max_file_bytes,) * 2)
    server = xllamacpp.Server(_parameters(options))
    sys.stdin.buffer.read()
    del server


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.support.llama.server")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-a", "--alias")
    parser.add_argument("-c", "--ctx-size", type=int, default=4096, help="of all slots together")
    parser.add_argument("-np", "--parallel", type=int, default=2)
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--host", default="127.0.0.1", help="or a path that ends in .sock")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("--slot-save-path")
    parser.add_argument("--no-slots", action="store_true")
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--api-key-file", type=Path)
    parser.add_argument("--ctx-checkpoints", type=int)
    parser.add_argument("--cache-ram", type=int, help="MiB")
    parser.add_argument("--sleep-idle-seconds", type=int)
    parser.add_argument("--max-file-bytes", type=int, help="no flag of llama-server")
    return parser


def _parameters(options: argparse.Namespace) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.n_ctx = options.ctx_size
    parameters.n_parallel = options.parallel
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.hostnames = [options.host]
    parameters.port = 0 if options.host.endswith(_SOCKET_SUFFIX) else options.port
    parameters.reuse_port = options.reuse_port
    parameters.endpoint_slots = not options.no_slots
    parameters.endpoint_metrics = options.metrics
    if options.alias is not None:
        parameters.model_alias = {options.alias}
    if options.slot_save_path is not None:
        # The server joins folder and name as they are.
        parameters.slot_save_path = options.slot_save_path.rstrip("/") + "/"
    if options.api_key_file is not None:
        parameters.api_keys = options.api_key_file.read_text().split()
    if options.ctx_checkpoints is not None:
        parameters.n_ctx_checkpoints = options.ctx_checkpoints
    if options.cache_ram is not None:
        parameters.cache_ram_mib = options.cache_ram
    if options.sleep_idle_seconds is not None:
        parameters.sleep_idle_seconds = options.sleep_idle_seconds
    return parameters


if __name__ == "__main__":
    main()
