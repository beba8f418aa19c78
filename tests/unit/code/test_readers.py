"""Parser processes: what they answer, how they die, and that they go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from muniment.code.frames import ReadRequest
from muniment.code.readers import Readers, most_readers
from muniment.kit.errors import UnavailableError
from muniment.v1 import code_pb2, store_pb2
from tests.support.code_trees import FILE_LIMIT_BYTES, parser_processes
from tests.waiting import until

HEAVY = ["grpc", "pydantic", "structlog", "lmdb", "pathspec", "watchfiles", "mcp", "asyncio"]


def _requests(folder: Path, names: Iterable[str]) -> Iterator[ReadRequest]:
    for name in names:
        yield ReadRequest(1, os.fsencode(folder / name), name, b"")


def _by_path(
    answers: Iterable[list[store_pb2.StoredCodeFile]],
) -> dict[str, store_pb2.StoredCodeFile]:
    return {row.path: row for some in answers for row in some}


@pytest.fixture
def own_readers() -> Iterator[Readers]:
    readers = Readers(1, FILE_LIMIT_BYTES)
    yield readers
    readers.close()
    assert not parser_processes()


def test_many_files_are_read_by_several_processes(tmp_path: Path) -> None:
    names = [f"f{number}.py" for number in range(100)]
    for name in names:
        (tmp_path / name).write_text(f"def {name[:-3]}(): pass\n")
    readers = Readers(2, FILE_LIMIT_BYTES)
    try:
        rows = _by_path(readers.read(_requests(tmp_path, names)))
        assert len(parser_processes()) == 2
    finally:
        readers.close()
    assert {path: [one.name for one in row.facts.symbols] for path, row in rows.items()} == {
        name: [name[:-3]] for name in names
    }


def test_a_file_that_kills_its_process_is_said_to_have(
    own_readers: Readers, tmp_path: Path
) -> None:
    names = ["a.py", "b.py", "c.py"]
    for name in names:
        (tmp_path / name).write_text("def f(): pass\n")
    assert _by_path(own_readers.read(_requests(tmp_path, names)))
    (process,) = parser_processes()
    os.kill(process, signal.SIGSTOP)

    def requests() -> Iterator[ReadRequest]:
        yield from _requests(tmp_path, names)
        os.kill(process, signal.SIGKILL)

    rows = _by_path(own_readers.read(requests()))
    assert [rows[name].condition for name in names] == [
        code_pb2.FILE_CONDITION_PARSER_FAILED,
        code_pb2.FILE_CONDITION_PARSED,
        code_pb2.FILE_CONDITION_PARSED,
    ]
    assert parser_processes() != [process]


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = [" + "f(1), " * 15_000 + "]\n")
    (tmp_path / "short.py").write_text("def f(): pass\n")
    readers = Readers(1, FILE_LIMIT_BYTES, file_cpu_seconds=0.001)
    try:
        rows = _by_path(readers.read(_requests(tmp_path, ["long.py", "short.py"])))
    finally:
        readers.close()
    assert rows["long.py"].condition == code_pb2.FILE_CONDITION_PARSER_FAILED
    assert set(rows) == {"long.py", "short.py"}


def test_who_closes_ends_what_is_under_way(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    readers = Readers(1, FILE_LIMIT_BYTES)
    answers = readers.read(_requests(tmp_path, ["a.py"] * 1000))
    next(answers)
    readers.close()
    assert not parser_processes()
    with pytest.raises(UnavailableError):
        list(answers)
    with pytest.raises(UnavailableError):
        list(readers.read(_requests(tmp_path, ["a.py"])))


def test_a_parser_process_is_small() -> None:
    say = "import sys, muniment.code.reader_process; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", say], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(HEAVY) & set(loaded)


def test_a_parser_process_ends_with_its_service(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    program = (
        "import os, sys, threading\n"
        "from muniment.code.readers import Readers\n"
        "from muniment.code.frames import ReadRequest\n"
        f"request = ReadRequest(1, {os.fsencode(tmp_path / 'a.py')!r}, 'a.py', b'')\n"
        "list(Readers(1, 1000).read([request]))\n"
        "print('read', flush=True)\n"
        "threading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        service.stdout.readline()
        processes = parser_processes(service.pid)
        assert processes
        service.kill()
    until(lambda: not any(map(_is_there, processes)), "the parser process ends")


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_how_many_processes_there_are() -> None:
    assert most_readers(0) >= 1
    assert most_readers(1) == 1
    assert most_readers(10_000) <= (os.cpu_count() or 1)
