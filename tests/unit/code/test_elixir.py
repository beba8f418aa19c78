"""Elixir: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    defmodule Acme.Widget do
      @moduledoc "A widget."
      use GenServer
      import Acme.Util
      alias Acme.{Helper, Other}
      alias Acme.Foo, as: Bar
      require Logger
      @max 3
      defstruct [:name, age: 1]
      @doc "Runs."
      @spec run(t) :: any
      def run(%{x: x} = a, b \\ 1) when is_map(a) do
        Helper.go(a.x)
        y = Foo.new(b)
        y |> Bar.baz() |> local()
        "hi #{name(a)}"
      end
      defp local(x), do: x
      defmacro mac(x), do: x
    end
    defprotocol P do
      def f(x)
    end
    defimpl P, for: Acme.Widget do
      def f(x), do: x
    end
"""


def test_symbols() -> None:
    facts = said("elixir", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "1-20 module Acme.Widget | doc: A widget.",
        "12-17 function Acme.Widget.run | doc: Runs.",
        "18-18 function Acme.Widget.local",
        "19-19 macro Acme.Widget.mac",
        "21-23 interface P",
        "22-22 method P.f",
        "24-26 other P | receiver: Acme.Widget",
        "25-25 method P.f",
    ]
    assert facts.signatures == [
        "defmodule Acme.Widget",
        "def run(%{x: x} = a, b \\\\ 1) when is_map(a)",
        "defp local(x), do: x",
        "defmacro mac(x), do: x",
        "defprotocol P",
        "def f(x)",
        "defimpl P, for: Acme.Widget",
        "def f(x), do: x",
    ]


def test_imports() -> None:
    assert said("elixir", SOURCE).imports == [
        "3 Acme.Widget: _ <- GenServer *",
        "4 Acme.Widget: _ <- Acme.Util *",
        "5 Acme.Widget: Helper <- Acme.Helper",
        "5 Acme.Widget: Other <- Acme.Other",
        "6 Acme.Widget: Bar <- Acme.Foo",
        "7 Acme.Widget: Logger <- Logger",
    ]


def test_bindings() -> None:
    assert said("elixir", SOURCE).bindings == [
        "Acme.Widget.run: y = Foo.new()",
    ]


def test_mentions() -> None:
    assert said("elixir", SOURCE).mentions == [
        "8 Acme.Widget calls max",
        "11 Acme.Widget names t",
        "12 Acme.Widget.run calls is_map",
        "12 Acme.Widget.run names a",
        "13 Acme.Widget.run calls Helper.go",
        "13 Acme.Widget.run calls a.x",
        "14 Acme.Widget.run calls Foo.new",
        "14 Acme.Widget.run names b",
        "15 Acme.Widget.run calls Bar.baz",
        "15 Acme.Widget.run calls local",
        "16 Acme.Widget.run calls name",
        "16 Acme.Widget.run names a",
        "18 Acme.Widget.local names x",
        "19 Acme.Widget.mac names x",
        "22 P.f names x",
        "24 P names Acme.Widget",
        "25 P.f names x",
    ]


PLAIN = r"""
    defmodule A do
      def run(a) do
        a - 1 + f("a  b")
      end
    end
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    defmodule A do
      # One.
      def run( a ) do

        a - 1 + f( "a  b" ) # two
      end
    end
"""
    assert hashes("elixir", formatted) == hashes("elixir", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("elixir", PLAIN.replace(old, new)) != hashes("elixir", PLAIN)
