"""Zig: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    const std = @import("std");
    const util = @import("lib/util.zig");
    /// Doc.
    pub const Widget = struct {
        name: []const u8,
        helper: Helper = .{},
        const MAX = 3;
        pub fn init(a: Allocator) Widget { return Widget{ .name = a.x() }; }
        fn run(self: *Widget, o: Other) !void {
            self.helper.go(o); const y = util.make(); y.bar(); try foo();
        }
    };
    const Color = enum { red, green };
    const U = union(enum) { a: i32 };
    fn top(a: i32) i32 { return std.math.max(a, 1); }
    test "x" { try top(1); }
    const LIMIT: i32 = 3;
"""


def test_symbols() -> None:
    facts = said("zig", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "4-12 struct Widget | doc: Doc.",
        "5-5 field Widget.name",
        "6-6 field Widget.helper | type: Helper",
        "7-7 field Widget.MAX",
        "8-8 method Widget.init | type: Widget",
        "9-11 method Widget.run",
        "13-13 enum Color",
        "13-13 field Color.red",
        "13-13 field Color.green",
        "14-14 struct U",
        "14-14 field U.a | type: i32",
        "15-15 function top | type: i32",
        "16-16 function x",
        "17-17 constant LIMIT",
    ]
    assert facts.signatures == [
        "pub const Widget",
        "name: []const u8",
        "helper: Helper = .{}",
        "const MAX = 3",
        "pub fn init(a: Allocator) Widget",
        "fn run(self: *Widget, o: Other) !void",
        "const Color",
        "red",
        "green",
        "const U",
        "a: i32",
        "fn top(a: i32) i32",
        'test "x"',
        "const LIMIT: i32 = 3",
    ]


def test_imports() -> None:
    assert said("zig", SOURCE).imports == [
        "1 .: std <- std",
        "2 .: util <- lib/util.zig",
    ]


def test_bindings() -> None:
    assert said("zig", SOURCE).bindings == [
        ".: LIMIT : i32",
        "Widget: helper : Helper",
        "Widget.init: a : Allocator",
        "Widget.run: o : Other",
        "Widget.run: self : Widget",
        "Widget.run: y = util.make()",
        "U: a : i32",
        "top: a : i32",
    ]


def test_mentions() -> None:
    assert said("zig", SOURCE).mentions == [
        "6 Widget.helper names Helper",
        "8 Widget.init names Allocator",
        "8 Widget.init names Widget",
        "8 Widget.init calls Widget",
        "8 Widget.init calls a.x",
        "9 Widget.run names Widget",
        "9 Widget.run names Other",
        "10 Widget.run calls self.helper.go",
        "10 Widget.run calls util.make",
        "10 Widget.run calls y.bar",
        "10 Widget.run calls foo",
        "15 top calls std.math.max",
        "16 x calls top",
    ]


PLAIN = r"""
    fn run(a: i32) i32 {
        return a - 1 + f("a  b");
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    // One.
    fn run( a: i32 ) i32
    {
        return a - 1
            + f( "a  b" ); // two
    }
"""
    assert hashes("zig", formatted) == hashes("zig", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("zig", PLAIN.replace(old, new)) != hashes("zig", PLAIN)
