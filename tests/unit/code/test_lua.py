"""Lua: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    local M = {}
    local util = require("lib.util")
    -- Doc.
    local function helper(a, b) return a + b end
    function M.run(x)
      helper(x, 1); util.go(x); M:other(2); local y = util.new(); y:bar()
    end
    function M:other(z) return self.x end
    M.field = 3
    LIMIT = 10
    local f = function(a) return g(a) end
    M.cb = function(a) end
    return M
"""


def test_symbols() -> None:
    facts = said("lua", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "1-1 constant M",
        "4-4 function helper | doc: Doc.",
        "5-7 method run | receiver: M",
        "8-8 method other | receiver: M",
        "10-10 constant LIMIT",
        "11-11 function f",
        "12-12 method cb | receiver: M",
    ]
    assert facts.signatures == [
        "M = {}",
        "local function helper(a, b)",
        "function M.run(x)",
        "function M:other(z)",
        "LIMIT = 10",
        "f = function(a)",
        "M.cb = function(a) end",
    ]


def test_imports() -> None:
    assert said("lua", SOURCE).imports == [
        "2 .: util <- lib/util",
    ]


def test_bindings() -> None:
    assert said("lua", SOURCE).bindings == [
        "run: y = util.new()",
    ]


def test_mentions() -> None:
    assert said("lua", SOURCE).mentions == [
        "2 . calls require",
        "6 run calls helper",
        "6 run calls util.go",
        "6 run calls M.other",
        "6 run calls util.new",
        "6 run calls y.bar",
        "8 other names self.x",
        "11 f calls g",
    ]


PLAIN = r"""
    function run(a)
      return a - 1 + f("a  b")
    end
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    -- One.
    function run( a )

      return a - 1 + f( "a  b" ) -- two
    end
"""
    assert hashes("lua", formatted) == hashes("lua", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("lua", PLAIN.replace(old, new)) != hashes("lua", PLAIN)
