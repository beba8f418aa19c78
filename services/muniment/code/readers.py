"""Parser processes: as many as there is work for, gone when there has been none for a while.

A file that its process dies of, or that takes too long, gets a row that says so, and a new process
goes on with the next file.
"""

from __future__ import annotations

import os
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import structlog

from muniment.code.frames import ReadRequest, pack_requests, send, take_frame
from muniment.code.limits import FILE_LIMIT_CPU_SECONDS
from muniment.code.reading import READER_VERSION
from muniment.kit.errors import InternalError, UnavailableError
from muniment.v1 import code_pb2, store_pb2

__all__ = ["Readers", "most_readers"]

_CHUNK_FILES = 16
_CHUNKS_AHEAD = 2
"""Chunks of one caller that wait behind those that are read, for each process."""
_IDLE_SECONDS = 20.0
_LAST_IDLE_SECONDS = 900.0
"""A process takes a tenth of a second to start, so the last one stays for the next edit."""
_PATIENCE_SECONDS = 60.0
_END_SECONDS = 5.0
_BLOCK_BYTES = 256 * 1024

_log = structlog.get_logger()


class _Gone(Exception):
    """The process does not answer any more."""


@dataclass(frozen=True)
class _Chunk:
    requests: Sequence[ReadRequest]
    answers: queue.SimpleQueue[list[store_pb2.StoredCodeFile] | Exception]


class Readers:
    """Reads files in processes. For any number of threads at a time."""

    def __init__(
        self, most: int, limit_bytes: int, *, file_cpu_seconds: float = FILE_LIMIT_CPU_SECONDS
    ) -> None:
        """At most so many processes; larger files, and those that take longer, are given up."""
        self._most = most
        self._limits = (str(limit_bytes), str(file_cpu_seconds))
        self._chunks: queue.SimpleQueue[_Chunk | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._closed = False

    def read(self, requests: Iterable[ReadRequest]) -> Iterator[list[store_pb2.StoredCodeFile]]:
        """Rows of the files, some at a time and in any order.

        Raises:
            InternalError: Parser processes do not start.
            UnavailableError: The service stops.
        """
        left = iter(requests)
        answers: queue.SimpleQueue[list[store_pb2.StoredCodeFile] | Exception]
        answers = queue.SimpleQueue()
        waiting = 0
        while True:
            while waiting < self._most * (1 + _CHUNKS_AHEAD):
                chunk = list(islice(left, _CHUNK_FILES))
                if not chunk:
                    break
                self._submit(_Chunk(chunk, answers))
                waiting += 1
            if not waiting:
                return
            answer = answers.get()
            waiting -= 1
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def stop(self) -> None:
        """Read no more; who waits is told so, after the file that is being read."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._chunks.put(None)

    def close(self) -> None:
        """End the processes, with what they are about."""
        self.stop()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _submit(self, chunk: _Chunk) -> None:
        with self._lock:
            if self._closed:
                raise _stopping()
            self._chunks.put(chunk)
            if self._idle < self._chunks.qsize() and len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, name="reader", daemon=True)
                self._threads.add(thread)
                thread.start()

    def _work(self) -> None:
        process: _Process | None = None
        try:
            while (chunk := self._next()) is not None:
                try:
                    rows: list[store_pb2.StoredCodeFile] = []
                    while len(rows) < len(chunk.requests):
                        process = process or _Process(self._limits)
                        process = self._read_some(process, chunk.requests[len(rows) :], rows)
                    chunk.answers.put(rows)
                except Exception as error:
                    # It may be in the middle of an answer.
                    if process is not None:
                        process.end()
                        process = None
                    chunk.answers.put(error)
        finally:
            if process is not None:
                process.end()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _next(self) -> _Chunk | None:
        """The next chunk; None where it is time to end."""
        waited = 0.0
        while True:
            with self._lock:
                if self._closed:
                    self._refuse()
                    return None
                is_last = len(self._threads) == 1
                self._idle += 1
            try:
                return self._chunks.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                waited += _IDLE_SECONDS
            finally:
                with self._lock:
                    self._idle -= 1
            with self._lock:
                # Nobody may count on a thread that has made up its mind.
                if self._chunks.empty() and (not is_last or waited >= _LAST_IDLE_SECONDS):
                    self._threads.discard(threading.current_thread())
                    return None

    def _refuse(self) -> None:
        """Tell those whose chunks nobody will read."""
        with suppress(queue.Empty):
            while True:
                chunk = self._chunks.get_nowait()
                if chunk is not None:
                    chunk.answers.put(_stopping())

    def _read_some(
        self,
        process: _Process,
        requests: Sequence[ReadRequest],
        rows: list[store_pb2.StoredCodeFile],
    ) -> _Process | None:
        """Read the files, as far as the process gets; it, or None where it is gone."""
        done = 0
        try:
            for row in process.read(requests):
                rows.append(row)
                done += 1
                if self._closed:
                    raise _stopping()
        except _Gone as error:
            process.end()
            failed = requests[done]
            _log.warning("parser failed", path=failed.path, because=str(error))
            rows.append(
                store_pb2.StoredCodeFile(
                    path=failed.path,
                    reader_version=READER_VERSION,
                    condition=code_pb2.FILE_CONDITION_PARSER_FAILED,
                )
            )
            return None
        return process


class _Process:
    """One parser process."""

    def __init__(self, limits: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "muniment.code.reader_process", *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._arrived = bytearray()
        try:
            hello = self._receive()
        except _Gone as error:
            self.end()
            raise InternalError(
                f"parser processes do not start: {error}",
                reason="PARSER_NOT_STARTED",
                fix="see the service's log with `muniment logs code`",
            ) from error
        if hello != str(READER_VERSION).encode():
            self.end()
            raise InternalError(
                "parser processes are of another version",
                reason="PARSER_NOT_STARTED",
                fix="restart the service with `muniment restart code`",
            )

    def read(self, requests: Sequence[ReadRequest]) -> Iterator[store_pb2.StoredCodeFile]:
        """Rows of the files, in order.

        Raises:
            _Gone: The process died of the next one, or takes too long.
        """
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, pack_requests(requests))
        except OSError as error:
            raise _Gone(str(error)) from error
        for _ in requests:
            yield store_pb2.StoredCodeFile.FromString(self._receive())

    def _receive(self) -> bytes:
        while (frame := take_frame(self._arrived)) is None:
            assert self._process.stdout is not None
            descriptor = self._process.stdout.fileno()
            if not select.select([descriptor], [], [], _PATIENCE_SECONDS)[0]:
                raise _Gone(f"no answer in {_PATIENCE_SECONDS:g} s")
            some = os.read(descriptor, _BLOCK_BYTES)
            if not some:
                raise _Gone(f"it ended with {self._process.wait(_END_SECONDS)}")
            self._arrived += some
        return frame

    def end(self) -> None:
        """End it, be it at work or not."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.kill()
        self._process.wait(_END_SECONDS)


def most_readers(wanted: int) -> int:
    """How many processes the setting means; 0 stands for one less than there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(wanted or max(1, (cores or 1) - 1), cores or 1)


def _stopping() -> UnavailableError:
    return UnavailableError("the service is stopping", reason="SERVICE_STOPPING", fix="call again")
