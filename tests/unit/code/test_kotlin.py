"""Kotlin: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    package com.acme.app
    import com.acme.util.Helper
    import com.acme.other.*
    import com.acme.x.Foo as Bar
    /** Doc. */
    @Service
    open class Widget(private val h: Helper, size: Int = 0) : Base(size), IFoo, IBar<Int> {
        val name: String = "x ${h.name()}"
        private var items = mutableListOf<Item>()
        override fun run(o: Other): List<String> {
            h.go(o.name); val x = Foo(1); x.bar()
            this.name; o?.let { it.x() }; Widget.make(); return items.map { f(it) }
        }
        companion object {
            const val MAX = 3
            fun make(): Widget = Widget(Helper())
        }
        init { setup() }
    }
    interface IFoo : IBaz {
        fun f(): Int
    }
    data class P(val x: Int)
    enum class Color { RED, GREEN }
    object Single {
        fun go() {}
    }
    sealed class S
    typealias Vec = List<Int>
    fun String.shout(): String = this.uppercase()
    fun top(a: Int) = helper(a)
    private val CONST = 1
"""


def test_symbols() -> None:
    facts = said("kotlin", SOURCE)
    assert facts.facts.package == "com.acme.app"
    assert facts.symbols == [
        "7-19 class Widget | bases: Base, IFoo, IBar | interfaces: IFoo, IBar | doc: Doc.",
        "7-7 field Widget.h | type: Helper",
        "8-8 field Widget.name | type: String",
        "9-9 field Widget.items",
        "10-13 method Widget.run | type: List",
        "15-15 field Widget.MAX | static",
        "16-16 method Widget.make | type: Widget | static",
        "20-22 interface IFoo | bases: IBaz",
        "21-21 method IFoo.f | type: Int",
        "23-23 class P",
        "23-23 field P.x | type: Int",
        "24-24 enum Color",
        "24-24 field Color.RED",
        "24-24 field Color.GREEN",
        "25-27 class Single",
        "26-26 method Single.go",
        "28-28 class S",
        "29-29 type Vec",
        "30-30 method shout | type: String | receiver: String",
        "31-31 function top",
        "32-32 constant CONST",
    ]
    assert facts.signatures == [
        "open class Widget(private val h: Helper, size: Int = 0) : Base(size), IFoo, IBar<Int>",
        "private val h: Helper",
        'val name: String = "x ${h.name()}"',
        "private var items = mutableListOf<Item>()",
        "override fun run(o: Other): List<String>",
        "const val MAX = 3",
        "fun make(): Widget",
        "interface IFoo : IBaz",
        "fun f(): Int",
        "data class P(val x: Int)",
        "val x: Int",
        "enum class Color",
        "RED",
        "GREEN",
        "object Single",
        "fun go()",
        "sealed class S",
        "typealias Vec = List<Int>",
        "fun String.shout(): String",
        "fun top(a: Int)",
        "private val CONST = 1",
    ]


def test_imports() -> None:
    assert said("kotlin", SOURCE).imports == [
        "2 .: Helper <- com.acme.util : Helper",
        "3 .: _ <- com.acme.other *",
        "4 .: Bar <- com.acme.x : Foo",
    ]


def test_bindings() -> None:
    assert said("kotlin", SOURCE).bindings == [
        "Widget: h : Helper",
        "Widget: items = mutableListOf()",
        "Widget: name : String",
        "Widget: size : Int",
        "Widget.run: o : Other",
        "Widget.run: x = Foo()",
        "P: x : Int",
        "top: a : Int",
    ]


def test_mentions() -> None:
    assert said("kotlin", SOURCE).mentions == [
        "6 Widget names Service",
        "7 Widget.h names Helper",
        "7 Widget names Int",
        "7 Widget calls Base",
        "7 Widget inherits Base",
        "7 Widget names size",
        "7 Widget implements IFoo",
        "7 Widget implements IBar",
        "8 Widget.name names String",
        "8 Widget.name calls h.name",
        "9 Widget.items calls mutableListOf",
        "9 Widget.items names Item",
        "10 Widget.run names Other",
        "10 Widget.run names List",
        "11 Widget.run calls h.go",
        "11 Widget.run names o.name",
        "11 Widget.run calls Foo",
        "11 Widget.run calls x.bar",
        "12 Widget.run names this.name",
        "12 Widget.run calls o.let",
        "12 Widget.run calls it.x",
        "12 Widget.run calls Widget.make",
        "12 Widget.run calls items.map",
        "12 Widget.run calls f",
        "12 Widget.run names it",
        "16 Widget.make names Widget",
        "16 Widget.make calls Widget",
        "16 Widget.make calls Helper",
        "18 Widget calls setup",
        "20 IFoo inherits IBaz",
        "21 IFoo.f names Int",
        "23 P.x names Int",
        "29 Vec names List",
        "30 shout names String",
        "30 shout names String",
        "30 shout calls this.uppercase",
        "31 top names Int",
        "31 top calls helper",
    ]


PLAIN = r"""
    fun run(a: Int): Int {
        return a - -1 + f("a  b")
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    // One.
    fun run( a: Int ): Int {

        return a - -1 + f( "a  b" ) // two
    }
"""
    assert hashes("kotlin", formatted) == hashes("kotlin", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("kotlin", PLAIN.replace(old, new)) != hashes("kotlin", PLAIN)
