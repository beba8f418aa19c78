"""Which paths a text shows."""

from __future__ import annotations

import base64
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.memory.limits import PATHS_LIMIT
from muniment.memory.shown_paths import path_suffixes, relative_path, shown_paths

FILES = {
    "src/app.py",
    "README.md",
    "Makefile",
    "src/kit/a-b_c.test.ts",
    "docs",
    "docs/é.md",
    "@x/y",
}


def shown(text: str, root: str = "/home/p") -> list[str]:
    return shown_paths(text, root, FILES.__contains__)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see src/app.py", ["src/app.py"]),
        ("see `src/app.py`.", ["src/app.py"]),
        ("(src/app.py:12:3) and \"README.md\"", ["src/app.py", "README.md"]),
        ("./src/app.py and src//app.py and src/kit/../app.py", ["src/app.py"]),
        ("/home/p/src/app.py", ["src/app.py"]),
        ("/home/q/src/app.py", []),
        ("../p/src/app.py", []),
        ("/home/p/../p/src/app.py", ["src/app.py"]),
        ("src/kit/a-b_c.test.ts", ["src/kit/a-b_c.test.ts"]),
        ("import @x/y", ["@x/y"]),
        ("docs/é.md", ["docs/é.md"]),
        ("{\"path\": \"src/app.py\"}", ["src/app.py"]),
        ("src/gone.py", []),
        ("in the docs folder", []),
        ("README.md README.md", ["README.md"]),
        ("https://example.org/src/app.py", []),
        ("", []),
    ],
)  # fmt: skip
def test_words_count_where_the_project_has_the_file(text: str, paths: list[str]) -> None:
    assert shown(text) == paths


DIFF = """\
diff --git a/old.c b/new.c
--- a/old.c
+++ b/new.c\t2025-01-01
@@ -1 +1 @@
--- /dev/null
+++ src/made.py
"""


def test_diff_headers_count_without_the_file() -> None:
    assert shown(DIFF) == ["old.c", "new.c", "src/made.py"]
    assert shown(DIFF, root="") == ["old.c", "new.c", "src/made.py"]
    assert shown(DIFF.replace("\n", "\r\n")) == ["old.c", "new.c", "src/made.py"]


@pytest.mark.parametrize(
    "text", ["--- ../outside", "+++ /etc/passwd", "--- a/../../x", "---", "--- \n+++ ", "a --- b"]
)
def test_headers_that_lead_out_do_not_count(text: str) -> None:
    assert shown(text) == []


def test_without_a_root_words_do_not_count() -> None:
    assert shown("see src/app.py", root="") == []


def test_there_is_a_limit() -> None:
    text = " ".join(f"dir/file{number}.py" for number in range(PATHS_LIMIT * 2))
    found = shown_paths(text, "/home/p", lambda _: True)
    assert found == [f"dir/file{number}.py" for number in range(PATHS_LIMIT)]


@pytest.mark.parametrize(
    ("path", "root", "relative"),
    [
        ("src/app.py", "/p", "src/app.py"),
        ("./src/./app.py", "/p", "src/app.py"),
        ("/p/src/app.py", "/p", "src/app.py"),
        ("/p/src/app.py", "", None),
        ("/p", "/p", None),
        ("/q/x", "/p", None),
        ("..", "/p", None),
        ("../x", "/p", None),
        ("a/../../x", "/p", None),
        ("", "/p", None),
        (".", "/p", None),
        ("..hidden/x", "/p", "..hidden/x"),
        ("...", "/p", "..."),
        ("src/", "/p", "src"),
        ("//p/x", "/p", "x"),
    ],
)
def test_paths_are_relative_to_the_root(path: str, root: str, relative: str | None) -> None:
    assert relative_path(path, root) == relative


def test_suffixes_start_at_a_part() -> None:
    assert list(path_suffixes("src/kit/app.py")) == ["src/kit/app.py", "kit/app.py", "app.py"]
    assert list(path_suffixes("app.py")) == ["app.py"]


BLOBS = [
    "a" * 500_000,
    "a." * 250_000,
    "a/" * 250_000,
    "-a" * 250_000,
    "+" * 500_000,
    "/" * 500_000,
    "x/" * 100_000 + "." * 100_000,
    base64.urlsafe_b64encode(random.Random(1).randbytes(300_000)).decode(),
    "diff --git a/" + "x" * 500_000,
    "--- " * 100_000,
]


@pytest.mark.parametrize("number", range(len(BLOBS)))
def test_blobs_take_no_more_time_than_prose(number: int) -> None:
    began = time.process_time()
    shown(BLOBS[number])
    assert time.process_time() - began < 2


@settings(max_examples=60)
@given(st.text(alphabet="ab/.-+@ \n:é", max_size=40))
def test_what_is_shown_stays_inside(text: str) -> None:
    for path in shown_paths(text, "/home/p", lambda _: True):
        assert relative_path(path, "/home/p") == path
        assert path in set(path_suffixes(path))
