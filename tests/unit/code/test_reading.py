"""Whatever a file holds, reading it gives facts or a condition, and the same ones each time."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.code.capturing import WINDOW_BYTES
from muniment.code.languages import LANGUAGES, language_of
from muniment.code.limits import NESTING_LIMIT, SIGNATURE_LIMIT_CHARACTERS
from muniment.code.reading import read
from muniment.v1 import code_pb2
from muniment.v1.store_pb2 import CodeFacts
from tests.unit.code import test_go, test_python, test_rust, test_typescript

EVERY = sorted(LANGUAGES)
LARGE = frozenset({"go", "java", "javascript", "python", "rust", "typescript"})
WORDS = [
    *("def f", "class A", "func f", "fn f", "function f", "interface I", "impl A", "import a"),
    *("from . import b", "return", "await", "new A", "self.x", "this.x", "super()", "a.b().c"),
    *("(", ")", "[", "]", "{", "}", "<", ">", ":", "::", ".", ",", ";", "=", "->", "=>", "?"),
    *('"', "'", "`", "${", "f'{", "#", "//", "/*", "*/", "\\", "\n", "\n    ", " ", "@", "*"),
    *("x", "é", "\0", "1", "# c\n", '"""', 'r#"', "<A/>"),
]
SOURCES = st.lists(st.sampled_from(WORDS), max_size=60).map("".join) | st.text(max_size=80)


def check(facts: CodeFacts) -> None:
    """What holds of all facts."""
    for index, symbol in enumerate(facts.symbols):
        assert symbol.name
        assert symbol.kind
        assert symbol.parent <= index
        assert 1 <= symbol.line <= symbol.end_line
        assert len(symbol.signature) <= SIGNATURE_LIMIT_CHARACTERS
        if symbol.parent:
            around = facts.symbols[symbol.parent - 1]
            assert around.line <= symbol.line
            assert symbol.end_line <= around.end_line
    said = facts.mentions
    assert list(said.chains) == sorted(set(said.chains))
    assert len(said.chain) == len(said.kind) == len(said.scope) == len(said.line)
    scopes = [*said.scope, *(one.scope for one in facts.imports)]
    assert all(scope <= len(facts.symbols) for scope in scopes)


@pytest.mark.parametrize("language", EVERY)
@settings(deadline=None, max_examples=20)
@given(source=SOURCES)
@example(source='@"""')
def test_any_text_is_read(language: str, source: str) -> None:
    content = source.encode(errors="surrogatepass")
    facts, _ = read("any", language, content)
    check(facts)
    assert facts == read("any", language, content)[0]


@pytest.mark.parametrize("language", EVERY)
@settings(deadline=None, max_examples=15)
@given(content=st.binary(max_size=100))
def test_any_bytes_are_read(language: str, content: bytes) -> None:
    check(read("any", language, content)[0])


@pytest.mark.parametrize("language", EVERY)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00\x01",
        b"x = '\xff'\n",
        b"(" * 10_000,
        b"(" * 100_000 + b")" * 100_000,
        b"f(" * 20_000 + b")" * 20_000,
        b"a" + b".b()" * 20_000,
    ],
    ids=["empty", "no text", "no UTF-8", "open", "brackets", "calls", "chain"],
)
def test_hostile_files_are_read(language: str, content: bytes) -> None:
    size = len(content) if language in LARGE else 20_000
    # The grammar of shell scripts takes the square of the size of what is none.
    check(read("hostile", language, content[: 4_000 if language == "bash" else size])[0])


def test_broken_syntax_is_read_around() -> None:
    facts, condition = read("a.py", "python", b"def f(:\n    pass\n\ndef g():\n    return f()\n")
    assert condition == code_pb2.FILE_CONDITION_PARSED_IN_PART
    assert "g" in [symbol.name for symbol in facts.symbols]


def test_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    plain = b'def f():\n    """a\n    b"""\n    g()\n'
    marked = b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")
    assert read("a.py", "python", marked) == read("a.py", "python", plain)


def test_what_is_nested_too_deeply_is_left_out_and_that_is_said() -> None:
    depth = NESTING_LIMIT + 5
    lines = [" " * level + f"class A{level}:" for level in range(depth)]
    facts, condition = read("a.py", "python", "\n".join([*lines, " " * depth + "pass"]).encode())
    assert len(facts.symbols) == NESTING_LIMIT
    assert condition == code_pb2.FILE_CONDITION_PARSED_IN_PART


@pytest.mark.parametrize(
    ("language", "module"),
    [
        ("go", test_go),
        ("python", test_python),
        ("rust", test_rust),
        ("typescript", test_typescript),
    ],
)
def test_a_large_file_is_read_like_a_small_one(language: str, module: object) -> None:
    """A file that is queried in several windows says as much in each of them."""
    source = getattr(module, "PLAIN").encode() + b"\n"  # noqa: B009 - of several modules
    once, _ = read("a", language, source)
    times = WINDOW_BYTES * 2 // len(source)
    facts, _ = read("a", language, source * times)
    assert len(facts.symbols) == len(once.symbols) * times
    assert len(facts.mentions.chain) == len(once.mentions.chain) * times
    assert {symbol.ast_hash for symbol in facts.symbols} == {
        symbol.ast_hash for symbol in once.symbols
    }


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("a/b.py", b"", "python"),
        ("a.PY", b"", "python"),
        ("a.test.tsx", b"", "tsx"),
        ("bin/tool", b"#!/usr/bin/env -S python3 -P\n", "python"),
        ("bin/tool", b"#!/usr/bin/python3.11\n", "python"),
        ("bin/tool", b"#!/bin/unknown\n", None),
        ("py", b"", None),
        ("a.unknown", b"#!/usr/bin/python\n", None),
        ("include/a.h", b"#pragma once\nint f(void);\n", "c"),
        ("include/a.h", b"#pragma once\n\nnamespace a {\n", "cpp"),
        ("include/a.h", b"/* class of things */\nstruct a;\n", "c"),
        ("Gemfile", b"", "ruby"),
        ("bin/run", b"#!/bin/sh\n", "bash"),
    ],
)
def test_the_language_of_a_file(path: str, head: bytes, language: str | None) -> None:
    assert language_of(path, head) == language
