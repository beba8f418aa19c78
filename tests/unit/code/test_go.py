"""Go: what a source says, side by side."""

from __future__ import annotations

import pytest

from tests.support.facts import hashes, said

SOURCE = """
    // Package demo is a demonstration.
    package demo

    import (
        "fmt"
        h "net/http"
        _ "embed"
        "example.com/go-util/v2"
    )

    // Limit of things.
    const Limit = 3

    var Default, other = NewServer(), 1

    // Server serves.
    // It does.
    type Server struct {
        h.Handler
        mux  *h.ServeMux
        next []*Server
    }

    type Runner interface {
        fmt.Stringer
        Run(a int) (Result, error)
    }

    // NewServer makes one.
    func NewServer(opts ...Option) (*Server, error) {
        s := &Server{mux: h.NewServeMux()}
        s.mux.Handle("/", s.Handler)
        for _, fmt := range opts {
            fmt.apply(s)
        }
        return s, nil
    }

    func (s *Server) Start(ctx context.Context) *Result {
        r := s.next[0].Start(ctx)
        go func() { s.run(r, Limit) }()
        fmt.Println(util.Name(r))
        return r
    }
"""


def test_symbols() -> None:
    facts = said("go", SOURCE)
    assert facts.facts.package == "demo"
    assert facts.symbols == [
        "12-12 constant Limit | doc: Limit of things.",
        "14-14 constant Default",
        "14-14 constant other",
        "18-22 struct Server | bases: h.Handler | doc: Server serves.",
        "20-20 field Server.mux | type: h.ServeMux",
        "21-21 field Server.next",
        "24-27 interface Runner | bases: fmt.Stringer",
        "26-26 method Runner.Run | type: Result",
        "30-37 function NewServer | type: Server | doc: NewServer makes one.",
        "39-44 method Start | type: Result | receiver: Server",
    ]
    assert facts.signatures[-2:] == [
        "func NewServer(opts ...Option) (*Server, error)",
        "func (s *Server) Start(ctx context.Context) *Result",
    ]


def test_imports() -> None:
    assert said("go", SOURCE).imports == [
        "5 .: fmt <- fmt",
        "6 .: h <- net/http",
        "7 .: _ <- embed",
        "8 .: util <- example.com/go-util/v2",
    ]


def test_bindings() -> None:
    assert said("go", SOURCE).bindings == [
        ".: Default = NewServer()",
        "Server: mux : h.ServeMux",
        "Runner.Run: a : int",
        "NewServer: fmt = ?",
        "NewServer: s = Server()",
        "Start: ctx : context.Context",
        "Start: s : Server",
    ]


def test_mentions() -> None:
    assert [line for line in said("go", SOURCE).mentions if " names " not in line] == [
        "14 other calls NewServer",
        "19 Server inherits h.Handler",
        "25 Runner inherits fmt.Stringer",
        "31 NewServer calls Server",
        "31 NewServer calls h.NewServeMux",
        "32 NewServer calls s.mux.Handle",
        "34 NewServer calls fmt.apply",
        "40 Start calls ?.Start",
        "41 Start calls s.run",
        "42 Start calls fmt.Println",
        "42 Start calls util.Name",
    ]
    assert [line for line in said("go", SOURCE).mentions if " names " in line][-4:] == [
        "39 Start names Server",
        "39 Start names context.Context",
        "39 Start names Result",
        "41 Start names Limit",
    ]


PLAIN = """
    package p
    func f(a int) int {
        b := a - -1
        g(a, b)
        return b
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = """
    package p

    // f is f.
    func f( a int ) int {
        b := a - -1 // one
        g(
            a, b)

        return b
    }
"""
    assert hashes("go", formatted) == hashes("go", PLAIN)


@pytest.mark.parametrize(
    ("old", "new"), [("a - -1", "a + 1"), ("return b", "return\n b"), ("g(a, b)", "g\n(a, b)")]
)
def test_any_other_change_makes_another_hash(old: str, new: str) -> None:
    assert hashes("go", PLAIN.replace(old, new)) != hashes("go", PLAIN)
