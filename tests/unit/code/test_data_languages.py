"""Data and documents: the names at their top, and no uses of names."""

from __future__ import annotations

import pytest

from muniment.code.limits import DATA_SYMBOLS_LIMIT
from muniment.code.reading import read
from muniment.v1 import code_pb2
from tests.support.facts import hashes, said

JSON = """
    {"name": "x", "scripts": {"build": "y"}, "list": [{"a": 1}]}
"""
YAML = """
    # Doc.
    name: x
    on:
      push: {}
    "quoted": 1
    ---
    second: 2
"""
TOML = """
    # Doc.
    title = "x"
    [tool.one]
    line-length = 100
    [[bin]]
    name = "z"
"""
MARKDOWN = """
    # The title

    ## Part `one`

    ```sh
    # no heading
    ```

    ### Deep

    Under
    lined
    -----

    ## Part two
"""
HTML = """
    <html><head><title>Hi there</title><script>let id = "x";</script></head>
    <body><div id="main" class="x"><h1>Head</h1><img id="shown"/></div></body></html>
"""
CSS = """
    /* Doc. */
    .foo, #bar > a:hover { color: red; }
    @media (max-width: 3px) { .baz { x: y } }
    @keyframes spin { from {} to {} }
"""
SQL = """
    -- Users.
    CREATE TABLE users (id INT PRIMARY KEY);
    CREATE VIEW seen AS SELECT * FROM users;
    CREATE FUNCTION one(a int) RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql;
    CREATE INDEX by_id ON users (id);
    INSERT INTO users VALUES (1);
    CREATE TABLE IF NOT EXISTS app.orders (id INT REFERENCES users(id));
"""


@pytest.mark.parametrize(
    ("language", "source", "symbols", "signatures"),
    [
        (
            "json",
            JSON,
            ["1-1 other name", "1-1 other scripts", "1-1 other list"],
            ['"name": "x"', '"scripts"', '"list"'],
        ),
        (
            "yaml",
            YAML,
            [
                "2-2 other name | doc: Doc.",
                "3-4 other on",
                "5-5 other quoted",
                "7-7 other second",
            ],
            ["name: x", "on", '"quoted": 1', "second: 2"],
        ),
        (
            "toml",
            TOML,
            ["2-2 other title | doc: Doc.", "3-4 other tool.one", "5-6 other bin"],
            ['title = "x"', "[tool.one]", "[[bin]]"],
        ),
        (
            "markdown",
            MARKDOWN,
            [
                "1-15 module The title",
                "3-14 module The title.Part `one`",
                "9-14 module The title.Part `one`.Deep",
                "11-13 module The title.Part `one`.Deep.Under lined",
                "15-15 module The title.Part two",
            ],
            ["The title", "Part `one`", "Deep", "Under lined", "Part two"],
        ),
        (
            "html",
            HTML,
            [
                "1-1 module Hi there",
                "2-2 other main",
                "2-2 module Head",
                "2-2 other shown",
            ],
            [
                "<title>Hi there</title>",
                '<div id="main" class="x">',
                "<h1>Head</h1>",
                '<img id="shown"/>',
            ],
        ),
        (
            "css",
            CSS,
            ["2-2 other .foo, #bar > a:hover | doc: Doc.", "3-3 other .baz", "4-4 other spin"],
            [".foo, #bar > a:hover", ".baz", "@keyframes spin"],
        ),
        (
            "sql",
            SQL,
            [
                "2-2 other users | doc: Users.",
                "3-3 other seen",
                "4-4 function one",
                "5-5 other by_id",
                "7-7 other app.orders",
            ],
            [
                "CREATE TABLE users (id INT PRIMARY KEY)",
                "CREATE VIEW seen AS",
                "CREATE FUNCTION one(a int) RETURNS int",
                "CREATE INDEX by_id ON users (id)",
                "CREATE TABLE IF NOT EXISTS app.orders (id INT REFERENCES users(id))",
            ],
        ),
    ],
    ids=["json", "yaml", "toml", "markdown", "html", "css", "sql"],
)
def test_what_is_at_the_top(
    language: str, source: str, symbols: list[str], signatures: list[str]
) -> None:
    facts = said(language, source)
    assert facts.condition == code_pb2.FILE_CONDITION_PARSED
    assert facts.symbols == symbols
    assert facts.signatures == signatures
    assert not facts.imports + facts.bindings + facts.mentions


def test_a_file_of_many_keys_gives_the_first_of_them_and_says_so() -> None:
    keys = ", ".join(f'"k{number}": {number}' for number in range(DATA_SYMBOLS_LIMIT + 1))
    facts, condition = read("a.json", "json", f"{{{keys}}}".encode())
    assert [symbol.name for symbol in facts.symbols][-1] == f"k{DATA_SYMBOLS_LIMIT - 1}"
    assert condition == code_pb2.FILE_CONDITION_PARSED_IN_PART


def test_a_value_is_part_of_the_hash_and_its_indentation_is_not() -> None:
    plain = "a:\n  b: [1, 2]\n"
    assert hashes("yaml", "# one\na:\n    b: [1,   2]\n") == hashes("yaml", plain)
    assert hashes("yaml", "a:\n  b: [1, 3]\n") != hashes("yaml", plain)
    assert hashes("markdown", "# A\n\ntext\n") != hashes("markdown", "# A\n\nother\n")
