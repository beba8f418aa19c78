"""Scala: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    package com.acme.app
    import com.acme.util.Helper
    import com.acme.other._
    import com.acme.{A, B => C}
    import com.acme.z.*
    /** Doc. */
    @Ann
    class Widget[T](val h: Helper, size: Int = 0) extends Base(size) with IFoo with IBar[Int] {
      val name: String = s"x ${h.name}"
      private var items = List.empty[Item]
      override def run(o: Other): List[String] = {
        h.go(o.name); val x = new Foo(1); x.bar(); Widget.make(); items.map(f(_))
      }
      type X = Int
    }
    object Widget { val MAX = 3; def make(): Widget = new Widget(Helper()) }
    trait IFoo extends IBaz { def f(): Int }
    case class P(x: Int)
    enum Color { case Red, Green }
    def top(a: Int) = helper(a)
"""


def test_symbols() -> None:
    facts = said("scala", SOURCE)
    assert facts.facts.package == "com.acme.app"
    assert facts.symbols == [
        "8-15 class Widget | bases: Base, IFoo, IBar | interfaces: IFoo, IBar | doc: Doc.",
        "9-9 field Widget.name | type: String",
        "10-10 field Widget.items",
        "11-13 method Widget.run | type: List",
        "14-14 type Widget.X | type: Int",
        "16-16 class Widget",
        "16-16 field Widget.MAX",
        "16-16 method Widget.make | type: Widget",
        "17-17 trait IFoo | bases: IBaz",
        "17-17 method IFoo.f | type: Int",
        "18-18 class P",
        "19-19 enum Color",
        "19-19 field Color.Red",
        "19-19 field Color.Green",
        "20-20 function top",
    ]
    assert facts.signatures == [
        "class Widget[T](val h: Helper, size: Int = 0) extends Base(size) with IFoo with IBar[Int]",
        'val name: String = s"x ${h.name}"',
        "private var items = List.empty[Item]",
        "override def run(o: Other): List[String]",
        "type X = Int",
        "object Widget",
        "val MAX = 3",
        "def make(): Widget",
        "trait IFoo extends IBaz",
        "def f(): Int",
        "case class P(x: Int)",
        "enum Color",
        "Red",
        "Green",
        "def top(a: Int)",
    ]


def test_imports() -> None:
    assert said("scala", SOURCE).imports == [
        "2 .: Helper <- com.acme.util : Helper",
        "3 .: _ <- com.acme.other *",
        "4 .: A <- com.acme : A",
        "4 .: C <- com.acme : B",
        "5 .: _ <- com.acme.z *",
    ]


def test_bindings() -> None:
    assert said("scala", SOURCE).bindings == [
        "Widget: h : Helper",
        "Widget: name : String",
        "Widget: size : Int",
        "Widget.run: o : Other",
        "Widget.run: x = Foo()",
        "P: x : Int",
        "top: a : Int",
    ]


def test_mentions() -> None:
    assert said("scala", SOURCE).mentions == [
        "7 Widget names Ann",
        "8 Widget names Helper",
        "8 Widget names Int",
        "8 Widget inherits Base",
        "8 Widget names size",
        "8 Widget implements IFoo",
        "8 Widget implements IBar",
        "8 Widget names Int",
        "9 Widget.name names String",
        "9 Widget.name names h.name",
        "10 Widget.items names List.empty",
        "10 Widget.items names Item",
        "11 Widget.run names Other",
        "11 Widget.run names List",
        "11 Widget.run names String",
        "12 Widget.run calls h.go",
        "12 Widget.run names o.name",
        "12 Widget.run calls Foo",
        "12 Widget.run calls x.bar",
        "12 Widget.run calls Widget.make",
        "12 Widget.run calls items.map",
        "12 Widget.run calls f",
        "14 Widget.X names Int",
        "16 Widget.make names Widget",
        "16 Widget.make calls Widget",
        "16 Widget.make calls Helper",
        "17 IFoo inherits IBaz",
        "17 IFoo.f names Int",
        "18 P names Int",
        "20 top names Int",
        "20 top calls helper",
    ]


PLAIN = r"""
    def run(a: Int): Int = {
      a - 1 + f("a  b")
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    // One.
    def run( a: Int ): Int = {

      a - 1 + f( "a  b" ) // two
    }
"""
    assert hashes("scala", formatted) == hashes("scala", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("scala", PLAIN.replace(old, new)) != hashes("scala", PLAIN)
