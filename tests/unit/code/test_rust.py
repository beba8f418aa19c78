"""Rust: what a source says, side by side."""

from __future__ import annotations

import pytest

from tests.support.facts import hashes, said

SOURCE = """
    //! Of the crate.
    use std::{fmt, io::{self, Read as R}, collections::*};
    pub use crate::net::Server;
    mod util;
    /// A pair.
    #[derive(Debug)]
    pub struct Pair<'a> { pub left: Box<Server>, right: &'a Server }
    pub trait Run: fmt::Debug + Base {
        fn run(&self) -> Result<Server, Error>;
        fn make() -> Self { Self::new() }
    }
    impl<'a> Run for Pair<'a> {
        /// Runs.
        fn run(&self) -> Result<Server, Error> {
            let opened = Server::open("a")?;
            let child: Option<Server> = self.left.clone().child().unwrap();
            println!("{}", util::go(child));
            opened.start::<Server>(|y| y.f()).await?.stop();
            Pair { left: opened, right: util::other }.zap()
        }
    }
    pub enum Choice { A(u8), B { c: Server } }
    const MAX: usize = 3;
    macro_rules! twice { () => {} }
    mod tests { use super::*; fn t() { run() } }
"""


def test_symbols() -> None:
    assert said("rust", SOURCE).symbols == [
        "7-7 struct Pair | doc: A pair.",
        "7-7 field Pair.left | type: Server",
        "7-7 field Pair.right | type: Server",
        "8-11 trait Run | bases: fmt.Debug, Base",
        "9-9 method Run.run | type: Server",
        "10-10 method Run.make | type: Self | static",
        "12-21 other Pair | bases: Run | interfaces: Run | receiver: Pair",
        "14-20 method Pair.run | type: Server | doc: Runs.",
        "22-22 enum Choice",
        "22-22 field Choice.A",
        "22-22 field Choice.B",
        "22-22 field Choice.B.c | type: Server",
        "23-23 constant MAX | type: usize",
        "24-24 macro twice",
        "25-25 module tests",
        "25-25 function tests.t",
    ]


def test_imports() -> None:
    assert said("rust", SOURCE).imports == [
        "2 .: fmt <- std : fmt",
        "2 .: io <- std::io",
        "2 .: R <- std::io : Read",
        "2 .: _ <- std::collections *",
        "3 .: Server <- crate::net : Server exported",
        "4 .: util <- self : util",
        "25 tests: _ <- super *",
    ]


def test_bindings() -> None:
    bindings = said("rust", SOURCE).bindings
    assert "Pair: left : Server" in bindings
    assert "Pair.run: child : Server" in bindings
    assert "Pair.run: opened = Server.open()" in bindings


def test_mentions() -> None:
    mentions = said("rust", SOURCE).mentions
    assert [line for line in mentions if " names " not in line] == [
        "8 Run inherits fmt.Debug",
        "8 Run inherits Base",
        "10 Run.make calls Self.new",
        "12 Pair implements Run",
        "15 Pair.run calls Server.open",
        "16 Pair.run calls self.left.clone",
        "16 Pair.run calls self.left.child",
        "16 Pair.run calls self.left.child().unwrap",
        "17 Pair.run calls println",
        "18 Pair.run calls opened.start",
        "18 Pair.run calls opened.start().stop",
        "18 Pair.run calls y.f",
        "19 Pair.run calls Pair",
        "19 Pair.run calls Pair().zap",
        "25 tests.t calls run",
    ]
    # What a macro is given is no expression to the grammar.
    assert "17 Pair.run names util.go" in mentions


PLAIN = """
    fn f(a: &u8) -> u8 {
        g(a, & &1)
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = """
    // f
    fn f( a : &u8 )->u8
    {
        g(a /* a */, & &1)
    }
"""
    assert hashes("rust", formatted) == hashes("rust", PLAIN)


@pytest.mark.parametrize(("old", "new"), [("& &1", "&&1"), ("&u8)", "&mut u8)"), ("g(a", "g(b")])
def test_any_other_change_makes_another_hash(old: str, new: str) -> None:
    assert hashes("rust", PLAIN.replace(old, new)) != hashes("rust", PLAIN)
