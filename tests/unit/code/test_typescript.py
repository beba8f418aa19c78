"""TypeScript, TSX and JavaScript: what a source says, side by side."""

from __future__ import annotations

import pytest

from tests.support.facts import hashes, said

SOURCE = """
    import React, { useState as state, type Foo } from "react";
    import * as ns from './ns';
    import "side";
    export * from "./all";
    export { a as b } from "./ab";
    export default class Widget<T> extends Base<T> implements ns.Thing, Other {
      /** Count of it. */
      private count: number = 0;
      static shared = new Widget();
      constructor(private readonly http: HttpClient, name?: string) {
        super(name); this.manager = new Manager();
      }
      get size(): Foo | null { return this.manager.size?.(state); }
      async load(id: string): Promise<Foo> {
        const loaded = await this.http.get<Foo>(`x${helper(id)}`);
        return loaded!.data.map((x) => helper(x));
      }
    }
    /** Helps. */
    export const helper = (x: string): Foo => ns.make(x);
    export interface Props extends ns.Props { name: string; go(a: Foo): Bar }
    enum Color { Red, Green = 2 }
    type Alias = Foo | Props;
    export const LIMIT = 10, other = { state: state, go() { return 1 } };
    namespace Inner { export function run(): void {} }
    const { q, w: e } = require("./req");
    Widget.prototype.zap = function () { return new ns.Deep.Thing(); };
    export { LIMIT as MAX };
"""


def test_symbols() -> None:
    assert said("typescript", SOURCE).symbols == [
        "6-18 class Widget | bases: Base, ns.Thing, Other | interfaces: ns.Thing, Other",
        "8-8 field Widget.count | type: number | doc: Count of it.",
        "9-9 field Widget.shared | static",
        "10-12 method Widget.constructor",
        "13-13 method Widget.size | type: Foo | property",
        "14-17 method Widget.load | type: Foo",
        "20-20 function helper | type: Foo | doc: Helps.",
        "21-21 interface Props | bases: ns.Props",
        "21-21 field Props.name | type: string",
        "21-21 method Props.go | type: Bar",
        "22-22 enum Color",
        "22-22 field Color.Red",
        "22-22 field Color.Green",
        "23-23 type Alias",
        "24-24 constant LIMIT",
        "24-24 constant other",
        "24-24 method other.go",
        "25-25 module Inner",
        "25-25 function Inner.run",
        "27-27 method zap | receiver: Widget",
    ]


def test_signatures() -> None:
    signatures = said("typescript", SOURCE).signatures
    assert "class Widget<T> extends Base<T> implements ns.Thing, Other" in signatures
    assert "async load(id: string): Promise<Foo>" in signatures
    assert "helper = (x: string): Foo" in signatures


def test_imports() -> None:
    assert said("typescript", SOURCE).imports == [
        "1 .: React <- react : default",
        "1 .: state <- react : useState",
        "1 .: Foo <- react : Foo",
        "2 .: ns <- ./ns",
        "3 .: _ <- side",
        "4 .: _ <- ./all * exported",
        "5 .: b <- ./ab : a exported",
        "6 .: default <-  : Widget exported",
        "26 .: q <- ./req : q",
        "26 .: e <- ./req : w",
        "28 .: MAX <-  : LIMIT exported",
    ]


def test_bindings() -> None:
    assert said("typescript", SOURCE).bindings == [
        "Widget: count : number",
        "Widget: http : HttpClient",
        "Widget: manager = Manager()",
        "Widget: shared = Widget()",
        "Widget.constructor: http : HttpClient",
        "Widget.constructor: name : string",
        "Widget.load: id : string",
        "Widget.load: loaded = this.http.get()",
        "helper: x : string",
        "Props: name : string",
        "Props.go: a : Foo",
    ]


def test_mentions() -> None:
    assert said("typescript", SOURCE).mentions == [
        "6 Widget inherits Base",
        "6 Widget implements ns.Thing",
        "6 Widget implements Other",
        "9 Widget.shared calls Widget",
        "11 Widget.constructor calls Manager",
        "13 Widget.size names Foo",
        "13 Widget.size calls this.manager.size",
        "13 Widget.size names state",
        "14 Widget.load names Foo",
        "15 Widget.load calls this.http.get",
        "15 Widget.load names Foo",
        "15 Widget.load calls helper",
        "16 Widget.load calls loaded.data.map",
        "16 Widget.load calls helper",
        "20 helper names Foo",
        "20 helper calls ns.make",
        "21 Props inherits ns.Props",
        "21 Props.go names Foo",
        "23 Alias names Foo",
        "23 Alias names Props",
        "24 other names state",
        "26 . calls require",
        "27 zap calls ns.Deep.Thing",
    ]


COMPONENT = """
    import { Panel, theme } from "./panel";
    function App({ title }) {
      return <Panel.Box color={theme}>Panel of <App title="Panel" /></Panel.Box>;
    }
"""


@pytest.mark.parametrize("language", ["javascript", "tsx"])
def test_elements_are_calls_and_their_text_is_none(language: str) -> None:
    assert [line for line in said(language, COMPONENT).mentions if "3 App" in line] == [
        "3 App calls Panel.Box",
        "3 App names theme",
        "3 App calls App",
        "3 App names Panel.Box",
    ]


SCRIPT = """
    const fs = require("fs");
    class Queue extends Base {
      limit = new Limit();
      put(item) { return fs.write(item); }
    }
    exports.run = function (queue) { queue.put(1); };
"""


def test_javascript() -> None:
    facts = said("javascript", SCRIPT)
    assert facts.symbols == [
        "1-1 constant fs",
        "2-5 class Queue | bases: Base",
        "3-3 field Queue.limit",
        "4-4 method Queue.put",
        "6-6 function run",
    ]
    assert facts.imports == ["1 .: fs <- fs"]
    assert facts.mentions == [
        "1 fs calls require",
        "2 Queue inherits Base",
        "3 Queue.limit calls Limit",
        "4 Queue.put calls fs.write",
        "6 run calls queue.put",
    ]


PLAIN = """
    function f(a: number) {
      const b = a - -1;
      return g(a, `x  ${b}`);
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = """
    /* f */
    function f( a:number )
    {
        const b = a - -1; // one
        return g( a,
                  `x  ${ b }` );
    }
"""
    assert hashes("typescript", formatted) == hashes("typescript", PLAIN)


@pytest.mark.parametrize(("old", "new"), [("a - -1", "a-- - 1"), ("x  $", "x $"), ("g(", "h(")])
def test_any_other_change_makes_another_hash(old: str, new: str) -> None:
    assert hashes("typescript", PLAIN.replace(old, new)) != hashes("typescript", PLAIN)
