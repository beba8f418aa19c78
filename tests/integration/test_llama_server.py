"""The llama-server that tests run is a real one: what the tests of slots rely on."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.llama.models import FOREIGN, SLIDING, TINY, ModelFiles, build_model
from tests.support.llama.process import StartLlama
from tests.support.tools import ROOT
from tests.waiting import until

PROMPT = "".join(f"line {number}: a fox jumps over {number * 7} dogs\n" for number in range(40))


def test_turn_is_warm_after_restart_and_restore(start_llama: StartLlama) -> None:
    server = start_llama()
    cold = server.complete(PROMPT)["timings"]
    saved = server.ask("POST", "/slots/0?action=save", {"filename": "one.bin"})
    assert saved.status_code == 200
    assert (server.save_folder / "one.bin").stat().st_size == saved.json()["n_written"]
    port = server.port
    server.restart()
    assert server.port == port
    assert server.ask("POST", "/slots/0?action=restore", {"filename": "one.bin"}).is_success
    warm = server.complete(PROMPT + "and on")["timings"]
    assert cold["cache_n"] == 0
    assert warm["cache_n"] >= cold["prompt_n"] - 1


def test_sliding_window_needs_checkpoints(start_llama: StartLlama) -> None:
    for checkpoints, brings in (("8", True), ("0", False)):
        server = start_llama(SLIDING, "--ctx-checkpoints", checkpoints)
        server.complete(PROMPT)
        server.ask("POST", "/slots/0?action=save", {"filename": "one.bin"})
        server.restart()
        server.ask("POST", "/slots/0?action=restore", {"filename": "one.bin"})
        warm = server.complete(PROMPT + "and on")["timings"]
        assert (warm["cache_n"] > warm["prompt_n"]) is brings
        assert brings or warm["cache_n"] == 0


def test_held_server_loads_until_it_may_go_on(start_llama: StartLlama) -> None:
    server = start_llama(held=True)
    assert server.ask("GET", "/props").status_code == 503
    server.let_load()
    assert server.ask("GET", "/props").json()["total_slots"] == 2


def test_paused_server_answers_when_it_goes_on(start_llama: StartLlama) -> None:
    server = start_llama()
    server.pause()
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{server.url}/health", timeout=0.3)
    server.resume()
    assert server.ask("GET", "/health").status_code == 200


def test_socket_key_and_refusals(start_llama: StartLlama) -> None:
    server = start_llama(FOREIGN, "--no-slots", saves=False, over_socket=True)
    assert server.ask("GET", "/slots").status_code == 501
    assert server.ask("POST", "/slots/0?action=save", {"filename": "a"}).status_code == 501
    key = server.save_folder / "key"
    key.write_text("hush\n")
    server.restart(arguments=("--api-key-file", str(key)))
    assert server.ask("GET", "/slots").status_code == 401


def test_small_disk_fails_a_save(start_llama: StartLlama) -> None:
    server = start_llama(TINY, "--max-file-bytes", "65536")
    server.complete(PROMPT)
    saved = server.ask("POST", "/slots/0?action=save", {"filename": "one.bin"})
    assert not saved.is_success, saved.text
    assert server.is_alive


def test_killed_server_refuses_connections(start_llama: StartLlama) -> None:
    server = start_llama()
    server.kill()
    with pytest.raises(httpx.ConnectError):
        server.ask("GET", "/health")


def test_models_are_the_same_each_time(model_files: ModelFiles, tmp_path: Path) -> None:
    assert build_model(FOREIGN, tmp_path).read_bytes() == model_files.of(FOREIGN).read_bytes()


def test_server_ends_with_its_test_even_if_paused(model_files: ModelFiles, tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from tests.support.llama.process import LlamaServer\n"
        "server = LlamaServer(*map(pathlib.Path, sys.argv[1:]))\n"
        "server.pause()\n"
        "print(server.port, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, str(model_files.of(TINY)), str(tmp_path)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=False, cwd=ROOT, timeout=30)
    until(lambda: refuses(int(ended.stdout)), "the server has ended")


def refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
