"""What a parser process says of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from muniment.code.frames import ReadRequest
from muniment.code.reader_process import read_file
from muniment.code.reading import READER_VERSION
from muniment.kit.clock import SystemClock
from muniment.v1 import code_pb2, store_pb2
from tests.support.seams import FakeClock

LIMIT_BYTES = 10_000


def _read(
    path: Path, before: store_pb2.StoredCodeFile | None = None, scan: int = 1
) -> store_pb2.StoredCodeFile:
    packed = b"" if before is None else before.SerializeToString()
    request = ReadRequest(scan, os.fsencode(path), path.name, packed)
    return read_file(request, LIMIT_BYTES, SystemClock())


def _scans(row: store_pb2.StoredCodeFile) -> dict[str, int]:
    return {one.name: one.changed_scan for one in row.facts.symbols}


def test_a_file_is_read_with_what_the_disk_says_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(): pass\n")
    row, found = _read(path), path.stat()
    assert (row.path, row.language, row.condition) == (
        "a.py",
        "python",
        code_pb2.FILE_CONDITION_PARSED,
    )
    assert (row.size_bytes, row.mtime_ns, row.inode) == (
        found.st_size,
        found.st_mtime_ns,
        found.st_ino,
    )
    assert row.reader_version == READER_VERSION
    assert [one.name for one in row.facts.symbols] == ["f"]


@pytest.mark.parametrize(
    ("name", "content", "condition"),
    [
        ("a.py", b"x" * (LIMIT_BYTES + 1), code_pb2.FILE_CONDITION_TOO_LARGE),
        ("a.py", b"x = 1\0", code_pb2.FILE_CONDITION_BINARY),
        ("a.unheard-of", b"words", code_pb2.FILE_CONDITION_NO_GRAMMAR),
        ("a.py", b"def f(:\n", code_pb2.FILE_CONDITION_PARSED_IN_PART),
        ("a.py", b"", code_pb2.FILE_CONDITION_PARSED),
        ("a.py", b"\xff\xfe = 1\n", None),
    ],
)
def test_guards(
    tmp_path: Path, name: str, content: bytes, condition: code_pb2.FileCondition.ValueType | None
) -> None:
    (tmp_path / name).write_bytes(content)
    row = _read(tmp_path / name)
    assert condition in {None, row.condition}
    row.SerializeToString()


def test_what_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "target.py").write_text("")
    (tmp_path / "link.py").symlink_to(tmp_path / "target.py")
    os.mkfifo(tmp_path / "pipe.py")
    for name in ("link.py", "pipe.py"):
        row = _read(tmp_path / name)
        assert row.condition == code_pb2.FILE_CONDITION_UNREADABLE
        assert row.inode
    assert not _read(tmp_path / "gone.py").inode


def test_a_file_that_changed_a_moment_ago_has_no_time_yet(tmp_path: Path) -> None:
    """Within the disk's tick it may change again without showing it."""
    path = tmp_path / "a.py"
    path.write_text("")
    changed_ns = path.stat().st_ctime_ns
    request = ReadRequest(1, os.fsencode(path), "a.py", b"")
    assert read_file(request, LIMIT_BYTES, FakeClock(changed_ns + 1_000_000)).ctime_ns == 0
    assert read_file(request, LIMIT_BYTES, FakeClock(changed_ns + 10**10)).ctime_ns == changed_ns


def test_a_symbol_changed_when_its_syntax_did(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("class A:\n    def f(self): return 1\n    def g(self): return 2\n")
    first = _read(path, scan=3)
    assert set(_scans(first).values()) == {3}
    path.write_text(
        "# new\nclass A:\n    def f(self):\n        return 1\n\n    def g(self): return 4\n"
    )
    second = _read(path, first, scan=7)
    assert (_scans(second)["f"], _scans(second)["g"]) == (3, 7)


def test_of_symbols_with_one_name_each_is_held_against_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(): return 1\ndef f(): return 2\n")
    first = _read(path, scan=1)
    path.write_text("def f(): return 1\ndef f(): return 3\ndef f(): return 2\n")
    second = _read(path, first, scan=2)
    assert [one.changed_scan for one in second.facts.symbols] == [1, 2, 2]


def test_what_was_read_already_is_taken_as_it_is(tmp_path: Path) -> None:
    """As after `touch`, or when a branch was left and taken up again."""
    path = tmp_path / "a.py"
    path.write_text("def f(): pass\n")
    before = _read(path)
    before.facts.symbols[0].signature = "as it was read before"
    assert _read(path, before, scan=9).facts == before.facts
    before.reader_version += 1
    assert _read(path, before, scan=9).facts != before.facts
