"""Solidity: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    pragma solidity ^0.8.0;
    import "./Base.sol";
    import {A, B as C} from "./lib.sol";
    import * as L from "./l.sol";
    /// Doc.
    contract Widget is Base, IFoo(1) {
        using SafeMath for uint256;
        uint256 public constant MAX = 3;
        Helper private helper;
        mapping(address => uint) balances;
        struct P { uint x; Helper h; }
        enum Color { Red, Green }
        event Done(uint a);
        error Bad(uint x);
        modifier only() { require(msg.sender == o); _; }
        constructor(uint a) Base(a) { helper = new Helper(a); }
        function run(Other o, uint x) public only returns (uint) {
            helper.go(o.name()); emit Done(x);
            Foo f = Foo(x); return L.f(x);
        }
    }
    interface IFoo { function f() external; }
    library SafeMath { function add(uint a) internal {} }
    function top(uint a) {}
"""


def test_symbols() -> None:
    facts = said("solidity", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "6-21 class Widget | bases: Base, IFoo | doc: Doc.",
        "8-8 field Widget.MAX | type: uint256",
        "9-9 field Widget.helper | type: Helper",
        "10-10 field Widget.balances",
        "11-11 struct Widget.P",
        "11-11 field Widget.P.x | type: uint",
        "11-11 field Widget.P.h | type: Helper",
        "12-12 enum Widget.Color",
        "12-12 field Widget.Color.Red",
        "12-12 field Widget.Color.Green",
        "13-13 other Widget.Done",
        "14-14 other Widget.Bad",
        "15-15 method Widget.only",
        "16-16 method Widget.constructor",
        "17-20 method Widget.run | type: uint",
        "22-22 interface IFoo",
        "22-22 method IFoo.f",
        "23-23 class SafeMath",
        "23-23 method SafeMath.add",
        "24-24 function top",
    ]
    assert facts.signatures == [
        "contract Widget is Base, IFoo(1)",
        "uint256 public constant MAX = 3",
        "Helper private helper",
        "mapping(address => uint) balances",
        "struct P",
        "uint x",
        "Helper h",
        "enum Color",
        "Red",
        "Green",
        "event Done(uint a)",
        "error Bad(uint x)",
        "modifier only()",
        "constructor(uint a) Base(a)",
        "function run(Other o, uint x) public only returns (uint)",
        "interface IFoo",
        "function f() external",
        "library SafeMath",
        "function add(uint a) internal",
        "function top(uint a)",
    ]


def test_imports() -> None:
    assert said("solidity", SOURCE).imports == [
        "2 .: _ <- ./Base.sol * exported",
        "3 .: A <- ./lib.sol : A",
        "3 .: C <- ./lib.sol : B",
        "4 .: L <- ./l.sol",
    ]


def test_bindings() -> None:
    assert said("solidity", SOURCE).bindings == [
        "Widget: MAX : uint256",
        "Widget: helper : Helper",
        "Widget.P: h : Helper",
        "Widget.P: x : uint",
        "Widget.constructor: a : uint",
        "Widget.run: f : Foo",
        "Widget.run: o : Other",
        "Widget.run: x : uint",
        "SafeMath.add: a : uint",
        "top: a : uint",
    ]


def test_mentions() -> None:
    assert said("solidity", SOURCE).mentions == [
        "6 Widget inherits Base",
        "6 Widget inherits IFoo",
        "7 Widget names SafeMath",
        "9 Widget.helper names Helper",
        "11 Widget.P.h names Helper",
        "15 Widget.only calls require",
        "15 Widget.only names msg.sender",
        "16 Widget.constructor calls Base",
        "16 Widget.constructor calls Helper",
        "17 Widget.run names Other",
        "17 Widget.run calls only",
        "18 Widget.run calls helper.go",
        "18 Widget.run calls o.name",
        "18 Widget.run calls Done",
        "19 Widget.run names Foo",
        "19 Widget.run calls Foo",
        "19 Widget.run calls L.f",
    ]


PLAIN = r"""
    contract A {
        function run(uint a) public { f(a - 1, "a  b"); }
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    contract A
    {
        // One.
        function run( uint a ) public
        {
            f( a - 1, "a  b" ); /* two */
        }
    }
"""
    assert hashes("solidity", formatted) == hashes("solidity", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("solidity", PLAIN.replace(old, new)) != hashes("solidity", PLAIN)
