"""Swift: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    import Foundation
    @testable import MyApp
    /// Doc.
    @available(iOS 13, *)
    public class Widget<T>: Base, IFoo {
        let name: String
        private var helper = Helper()
        static let shared = Widget()
        var age: Int { return helper.age }
        init(name: String, o: Other?) { self.name = name; super.init() }
        func run(_ o: Other, with x: Int) -> [Foo] {
            helper.go(o.name); let y = Foo(x); y.bar()
            Widget.make()

            items.map { $0.id }; guard let z = o.z() else { return [] }; return f(y) }
        class func make() -> Widget { Widget() }
        enum Kind: String { case a, b(Int) }
        deinit {}
    }
    protocol IFoo: IBar { func f() -> Int; var g: String { get } }
    struct P: Codable { var x: Int }
    extension Widget: Baz { func ext() {} }
    typealias Vec = [Int]
    func top(a: Int) -> String { return "x \(a.description)" }
    let CONST = 1
    actor A {}
"""


def test_symbols() -> None:
    facts = said("swift", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "5-19 class Widget | bases: Base, IFoo | doc: Doc.",
        "6-6 field Widget.name | type: String",
        "7-7 field Widget.helper",
        "8-8 field Widget.shared | static",
        "9-9 field Widget.age | type: Int",
        "10-10 method Widget.init",
        "11-15 method Widget.run",
        "16-16 method Widget.make | type: Widget",
        "17-17 enum Widget.Kind | bases: String | interfaces: String",
        "17-17 field Widget.Kind.a",
        "17-17 field Widget.Kind.b",
        "18-18 method Widget.deinit",
        "20-20 interface IFoo | bases: IBar",
        "20-20 method IFoo.f | type: Int",
        "20-20 field IFoo.g | type: String",
        "21-21 struct P | bases: Codable | interfaces: Codable",
        "21-21 field P.x | type: Int",
        "22-22 other Widget | bases: Baz | interfaces: Baz | receiver: Widget",
        "22-22 method Widget.ext",
        "23-23 type Vec",
        "24-24 function top | type: String",
        "25-25 constant CONST",
        "26-26 class A",
    ]
    assert facts.signatures == [
        "public class Widget<T>: Base, IFoo",
        "let name: String",
        "private var helper = Helper()",
        "static let shared = Widget()",
        "var age: Int",
        "init(name: String, o: Other?)",
        "func run(_ o: Other, with x: Int) -> [Foo]",
        "class func make() -> Widget",
        "enum Kind: String",
        "case a",
        "b(Int)",
        "deinit",
        "protocol IFoo: IBar",
        "func f() -> Int",
        "var g: String { get }",
        "struct P: Codable",
        "var x: Int",
        "extension Widget: Baz",
        "func ext()",
        "typealias Vec = [Int]",
        "func top(a: Int) -> String",
        "let CONST = 1",
        "actor A",
    ]


def test_imports() -> None:
    assert said("swift", SOURCE).imports == [
        "1 .: _ <- Foundation *",
        "2 .: _ <- MyApp *",
    ]


def test_bindings() -> None:
    assert said("swift", SOURCE).bindings == [
        "Widget: age : Int",
        "Widget: helper = Helper()",
        "Widget: name : String",
        "Widget: shared = Widget()",
        "Widget.init: name : String",
        "Widget.init: o : Other",
        "Widget.run: o : Other",
        "Widget.run: x : Int",
        "Widget.run: y = Foo()",
        "P: x : Int",
        "top: a : Int",
    ]


def test_mentions() -> None:
    assert said("swift", SOURCE).mentions == [
        "4 Widget names available",
        "5 Widget inherits Base",
        "5 Widget inherits IFoo",
        "6 Widget.name names String",
        "7 Widget.helper calls Helper",
        "8 Widget.shared calls Widget",
        "9 Widget.age names Int",
        "9 Widget.age names helper.age",
        "10 Widget.init names String",
        "10 Widget.init names Other",
        "10 Widget.init names self.name",
        "10 Widget.init calls super.init",
        "11 Widget.run names Other",
        "11 Widget.run names Int",
        "11 Widget.run names Foo",
        "12 Widget.run calls helper.go",
        "12 Widget.run names o.name",
        "12 Widget.run calls Foo",
        "12 Widget.run calls y.bar",
        "13 Widget.run calls Widget.make",
        "15 Widget.run calls items.map",
        "15 Widget.run calls o.z",
        "15 Widget.run calls f",
        "16 Widget.make names Widget",
        "16 Widget.make calls Widget",
        "17 Widget.Kind implements String",
        "17 Widget.Kind.b names Int",
        "20 IFoo inherits IBar",
        "20 IFoo.f names Int",
        "20 IFoo.g names String",
        "21 P implements Codable",
        "21 P.x names Int",
        "22 Widget implements Baz",
        "23 Vec names Int",
        "24 top names Int",
        "24 top names String",
        "24 top names a.description",
    ]


PLAIN = r"""
    func run(a: Int) -> Int {
        return a - 1 + f("a  b")
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    // One.
    func run( a: Int ) -> Int {

        return a - 1 + f( "a  b" ) // two
    }
"""
    assert hashes("swift", formatted) == hashes("swift", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("swift", PLAIN.replace(old, new)) != hashes("swift", PLAIN)
