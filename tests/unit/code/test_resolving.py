"""What names mean in real sources of several languages."""

from __future__ import annotations

from muniment.code.graph import CodeGraph, Place
from muniment.code.languages import language_of
from muniment.code.reading import read
from muniment.v1.code_pb2 import EdgeCertainty, EdgeKind


def graph_of(files: dict[str, str]) -> CodeGraph:
    graph, changes = CodeGraph(), {}
    for path, text in files.items():
        language = language_of(path, text.encode())
        assert language
        changes[path] = (language, read(path, language, text.encode())[0])
    graph.replace(changes)
    return graph


def certain_calls(graph: CodeGraph, caller: str) -> set[str]:
    (place,) = graph.find(caller).places
    return {
        graph.qualified_name(target)
        for edge in graph.edges_from(place.path)
        if Place(place.path, edge.scope_index) == place
        and edge.kind == EdgeKind.EDGE_KIND_CALLS
        and edge.certainty == EdgeCertainty.EDGE_CERTAINTY_RESOLVED
        for target in edge.targets
    }


PYTHON = {
    "src/app/__init__.py": "from .core import *\n",
    "src/app/core.py": """
from __future__ import annotations
import app.util
from app.util import helper as aid, Box

class Base:
    def run(self) -> Box: ...
    @property
    def box(self) -> Box: ...
    @classmethod
    def make(cls) -> Self: ...

class Sub(Base):
    def __init__(self, spare: Box, other):
        self.spare = spare
        self.other = other
        self.made = Box()
    def go(self):
        self.run().open()
        self.box.open()
        self.spare.open()
        self.made.open()
        super().run()
        app.util.helper()
        aid()
        Sub.make().go()
    def unknown(self, run, json):
        run()
        self.other.open()
        json.loads()
""",
    "src/app/util.py": "class Box:\n    def open(self): ...\n\ndef helper(): ...\n",
    "src/json.py": "def loads(): ...\n",
    "tests/test_it.py": "from app import Sub, Base as B\ndef go():\n    Sub(1, 2).go()\n    B()\n",
}


def test_python() -> None:
    graph = graph_of(PYTHON)
    util, core = "src::app::util::", "src::app::core::"
    assert certain_calls(graph, "Sub.go") == {
        f"{core}Base::run",
        f"{util}Box::open",
        f"{util}helper",
        f"{core}Base::make",
        f"{core}Sub::go",
    }
    assert certain_calls(graph, "Sub.__init__") == {f"{util}Box"}
    assert certain_calls(graph, "Sub.unknown") == set()
    assert certain_calls(graph, "test_it::go") == {
        f"{core}Sub",
        f"{core}Sub::go",
        f"{core}Base",
    }


def test_standard_modules_are_not_taken_for_files_elsewhere() -> None:
    graph = graph_of(
        {"lib/logging.py": "def info(): ...\n", "app/a.py": "import logging\nlogging.info()\n"}
    )
    assert graph.edges_from("app/a.py") == []


def test_typescript() -> None:
    graph = graph_of(
        {
            "src/a.ts": """
import Svc, { Tee as T } from './b';
import * as ns from './c';
export class A extends T {
  private s: Svc;
  constructor(private t: T) { super(); this.s = new Svc(); }
  run() { this.s.go(); this.t.base(); this.base(); ns.free(); ns.deep(); }
}
""",
            "src/b.ts": """
export class Tee { constructor() {} base() {} }
export default class Service { go() {} }
""",
            "src/c.ts": "export function free() {}\nexport { deep } from './d';\n",
            "src/d/index.ts": "export function deep() {}\n",
        }
    )
    assert certain_calls(graph, "A.run") == {
        "src::b::Service::go",
        "src::b::Tee::base",
        "src::c::free",
        "src::d::index::deep",
    }
    assert certain_calls(graph, "A.constructor") == {"src::b::Service"}


def test_rust() -> None:
    graph = graph_of(
        {
            "src/lib.rs": "pub mod net;\npub mod util;\n",
            "src/util.rs": """
pub struct Client {}
impl Client { pub fn new() -> Self { Client {} } pub fn go(&self) {} }
""",
            "src/net/mod.rs": """
mod sub;
use crate::util::Client;
pub struct T { c: Client }
trait Greets { fn greet(&self) {} }
impl Greets for T {}
impl T {
    pub fn new() -> Self { T { c: Client::new() } }
    fn run(&self) { self.c.go(); Self::new(); sub::free(); helper(); self.greet(); }
}
fn helper() { let t = T::new(); t.run(); }
""",
            "src/net/sub.rs": "pub fn free() { super::helper(); crate::util::Client::new(); }\n",
        }
    )
    client = "src::util::Client::"
    assert certain_calls(graph, "T.run") == {
        f"{client}go",
        "src::net::mod::T::new",
        "src::net::sub::free",
        "src::net::mod::helper",
        "src::net::mod::Greets::greet",
    }
    assert certain_calls(graph, "mod::helper") == {"src::net::mod::T::new", "src::net::mod::T::run"}
    assert certain_calls(graph, "sub::free") == {f"{client}new", "src::net::mod::helper"}


def test_go() -> None:
    graph = graph_of(
        {
            "cmd/main.go": """package main
import n "x.com/y/net"
func main() { c := n.New(); c.Do(); local(); n.New().Do() }
""",
            "cmd/more.go": "package main\nfunc local() {}\n",
            "other/more.go": "package other\nfunc local() {}\n",
            "net/client.go": """package net
type Client struct { Base }
func New() *Client { return &Client{} }
""",
            "net/methods.go": """package net
func (c *Client) Do() { c.Help(); c.Own() }
func (c *Client) Own() {}
""",
            "net/base.go": "package net\ntype Base struct {}\nfunc (b *Base) Help() {}\n",
        }
    )
    assert certain_calls(graph, "main::main") == {
        "net::client::New",
        "net::methods::Client::Do",
        "cmd::more::local",
    }
    assert certain_calls(graph, "Client.Do") == {
        "net::base::Base::Help",
        "net::methods::Client::Own",
    }


def test_languages_know_nothing_of_each_other() -> None:
    graph = graph_of(
        {
            "a.py": "def f(x):\n    x.go()\n    run()\n",
            "b.ts": "export class A { go() {} }\nexport function run() {}\n",
            "c.go": "package c\nfunc run() {}\n",
        }
    )
    assert graph.edges_from("a.py") == []
