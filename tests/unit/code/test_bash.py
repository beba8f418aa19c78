"""Shell scripts: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    #!/bin/bash
    source ./lib.sh
    . other.sh
    # Doc.
    LIMIT=3
    readonly X=1
    run() { local a=$1; helper "$a" "x $(inner b)"; if foo; then bar | baz; fi; }
    function other { run "${X}"; }
    export PATH=$PATH:/x
    run 1
    cat <<EOF
    hi
    EOF
"""


def test_symbols() -> None:
    facts = said("bash", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "5-5 constant LIMIT | doc: Doc.",
        "6-6 constant X",
        "7-7 function run",
        "8-8 function other",
        "9-9 constant PATH",
    ]
    assert facts.signatures == [
        "LIMIT=3",
        "X=1",
        "run()",
        "function other",
        "PATH=$PATH:/x",
    ]


def test_imports() -> None:
    assert said("bash", SOURCE).imports == [
        "2 .: _ <- ./lib.sh * exported",
        "3 .: _ <- other.sh * exported",
    ]


def test_bindings() -> None:
    assert said("bash", SOURCE).bindings == []


def test_mentions() -> None:
    assert said("bash", SOURCE).mentions == [
        "7 run calls helper",
        "7 run calls inner",
        "7 run calls foo",
        "7 run calls bar",
        "7 run calls baz",
        "8 other calls run",
        "8 other names X",
        "9 PATH names PATH",
        "10 . calls run",
        "11 . calls cat",
    ]


PLAIN = r"""
    run() {
      f 1 "a  b"
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    # One.
    run() {

      f 1 "a  b" # two
    }
"""
    assert hashes("bash", formatted) == hashes("bash", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("bash", PLAIN.replace(old, new)) != hashes("bash", PLAIN)
