"""A llama-server that a test starts, kills, pauses and starts again on the same port."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import httpx

from tests.support.llama.models import TINY, ModelFiles, ModelPlan
from tests.support.tools import ROOT
from tests.waiting import until

__all__ = ["LlamaServer", "Shape", "StartLlama"]

_READY_SECONDS = 30.0
_CALL_SECONDS = 600.0


class Shape(TypedDict, total=False):
    """How a server is started, besides its model and flags."""

    slots: int
    """How many it has; two."""
    slot_tokens: int
    """Room of each; 2048."""
    saves: bool
    """Whether it may save slots, which it may."""
    save_folder: Path
    """Where it saves them; a folder of its own."""
    over_socket: bool
    """It listens on a socket file instead of a port."""
    held: bool
    """It stays loading until `let_load`."""


class LlamaServer:
    """One server, over the processes that it has one after another; ready when this returns."""

    def __init__(self, model: Path, folder: Path, *arguments: str, **shape: Unpack[Shape]) -> None:
        """Start a server.

        Args:
            model: File of its model.
            folder: Where it keeps what it needs; a new one, with a short path for a socket.
            arguments: More flags of `tests.support.llama.server`.
            shape: The rest.
        """
        self.model = model
        self.save_folder = shape.get("save_folder", folder / "saves")
        self.socket = folder / "llama.sock" if shape.get("over_socket") else None
        self._folder = folder
        self._reserved = _reserve_port()
        self._shape = (shape.get("slots", 2), shape.get("slot_tokens", 2048))
        self._saves = shape.get("saves", True)
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        transport = httpx.HTTPTransport(uds=str(self.socket)) if self.socket else None
        base_url = "http://llama-server" if self.socket else self.url
        self._client = httpx.Client(base_url=base_url, transport=transport, timeout=_CALL_SECONDS)
        for needed in (self._folder, self.save_folder):
            needed.mkdir(parents=True, exist_ok=True)
        self._start(held=shape.get("held", False))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._client.close()
        self._reserved.close()

    @property
    def port(self) -> int:
        """Its port, which nobody else gets while this object lives."""
        return int(self._reserved.getsockname()[1])

    @property
    def url(self) -> str:
        """Where it answers, as the setting `llama_url` names it."""
        return f"unix:{self.socket}" if self.socket else f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, or is paused."""
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """What all its processes have written."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """End its process with SIGKILL, where it has one."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None

    def pause(self) -> None:
        """Stop its process with SIGSTOP: it takes connections, and answers none."""
        self._signal(signal.SIGSTOP)
        assert self._process is not None
        os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def restart(
        self,
        *,
        model: Path | None = None,
        slots: int | None = None,
        slot_tokens: int | None = None,
        saves: bool | None = None,
        arguments: Sequence[str] | None = None,
        held: bool = False,
    ) -> None:
        """Kill it and start it again at the same place, with what is given changed."""
        self.kill()
        self.model = model or self.model
        self._shape = (slots or self._shape[0], slot_tokens or self._shape[1])
        self._saves = self._saves if saves is None else saves
        self._arguments = self._arguments if arguments is None else tuple(arguments)
        self._start(held=held)

    def let_load(self) -> None:
        """Let a held process load its model, and wait until it is ready."""
        loaded = self._folder / "loaded.gguf"
        shutil.copyfile(self.model, loaded)
        loaded.replace(self._held)
        # It waits in its first try to open the model, which ends with nothing read, now that
        # somebody opens the other end. It tries once more, and finds the file.
        os.close(os.open(self._gate, os.O_RDWR | os.O_NONBLOCK))
        self._wait_until_ready()

    def ask(self, method: str, path: str, json: object = None) -> httpx.Response:
        """Its answer to a request."""
        return self._client.request(method, path, json=json)

    def complete(self, prompt: str | list[int], slot: int = 0, n_predict: int = 1) -> Any:
        """What it generates after the prompt in that slot, with its `timings`, always the same."""
        body = {
            "prompt": prompt,
            "id_slot": slot,
            "n_predict": n_predict,
            "cache_prompt": True,
            "temperature": 0,
        }
        answer = self.ask("POST", "/completion", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def stream(self, prompt: str, slot: int = 0, n_predict: int = 8) -> str:
        """The same as it is streamed, to its end."""
        body = {"prompt": prompt, "id_slot": slot, "n_predict": n_predict, "stream": True}
        # The server may close a connection that it has streamed over, without a word.
        connection = {"Connection": "close"}
        with self._client.stream("POST", "/completion", json=body, headers=connection) as answer:
            return answer.read().decode()

    def tokens(self, text: str) -> list[int]:
        """The text's tokens, as it counts them."""
        answer = self.ask("POST", "/tokenize", {"content": text})
        assert answer.status_code == 200, answer.text
        tokens: list[int] = answer.json()["tokens"]
        return tokens

    @property
    def _log(self) -> Path:
        return self._folder / "llama.log"

    @property
    def _held(self) -> Path:
        return self._folder / "held.gguf"

    @property
    def _gate(self) -> Path:
        return self._folder / "gate"

    def _start(self, *, held: bool) -> None:
        model = self.model
        if held:
            self._held.unlink(missing_ok=True)
            self._gate.unlink(missing_ok=True)
            os.mkfifo(self._gate)
            os.link(self._gate, self._held)
            model = self._held
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.llama.server", *self._command(model)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                # In a group of its own: where it is paused and the test dies, the system ends it.
                process_group=0,
            )
        if held:
            until(lambda: self._health() == 503, "the server loads", seconds=_READY_SECONDS)
        else:
            self._wait_until_ready()

    def _command(self, model: Path) -> list[str]:
        slots, slot_tokens = self._shape
        place = ["--port", str(self.port), "--reuse-port"]
        if self.socket is not None:
            place = ["--host", str(self.socket)]
        saves = ["--slot-save-path", str(self.save_folder)] if self._saves else []
        shape = ["-np", str(slots), "-c", str(slots * slot_tokens)]
        return ["-m", str(model), *shape, *place, *saves, *self._arguments]

    def _wait_until_ready(self) -> None:
        try:
            until(lambda: self._health() == 200, "the server is ready", seconds=_READY_SECONDS)
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{error}; it said: {self.log()}") from error

    def _health(self) -> int | None:
        assert self._process is not None
        assert self._process.poll() is None, "the server has ended"
        if not self._accepts():
            return None
        try:
            return self._client.get("/health").status_code
        except httpx.HTTPError:
            return None

    def _accepts(self) -> bool:
        # The client would not close a socket file's connection that failed.
        family = socket.AF_UNIX if self.socket else socket.AF_INET
        with socket.socket(family) as probe:
            return probe.connect_ex(str(self.socket or "") or ("127.0.0.1", self.port)) == 0

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class StartLlama:
    """Starts servers in folders of their own."""

    def __init__(self, stack: ExitStack, files: ModelFiles, folder: Path) -> None:
        """Start servers that end with the stack, with models from there, below that folder."""
        self._stack = stack
        self._files = files
        self._folder = folder
        self._numbers = itertools.count(1)

    def file_of(self, model: ModelPlan | Path) -> Path:
        """The model's file."""
        return self._files.of(model) if isinstance(model, ModelPlan) else model

    def __call__(
        self, model: ModelPlan | Path = TINY, *arguments: str, **shape: Unpack[Shape]
    ) -> LlamaServer:
        """A server with that model; the rest as for `LlamaServer`."""
        folder = self._folder / f"llama{next(self._numbers)}"
        server = LlamaServer(self.file_of(model), folder, *arguments, **shape)
        return self._stack.enter_context(server)


def _reserve_port() -> socket.socket:
    # Bound and not listening: a server that reuses the port gets all its connections, and while
    # none runs they are refused.
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
