"""Ruby: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    require "set"
    require_relative "lib/store"

    module Acme
      # Runs things.
      class Runner < Base::Worker
        include Comparable

        LIMIT = 3
        attr_reader :name, :store

        def initialize(name, size: 1)
          @name = name
          @store = Store.new(name)
          super()
        end

        # Makes one.
        def self.build(*args)
          new(*args)
        end

        class << self
          def default
            build(LIMIT)
          end
        end

        def run(job)
          made = Job.new
          made.go(job)
          @store.put job, made
          helper
          jobs.each { |each| each.stop }
          Acme::Util.log("ran #{job.name}")
        end

        def done?
          @store.empty?
        end
      end

      module Countable
        def count = items.size
      end
    end

    class Acme::Other; end

    def top(value)
      Acme::Runner.build(value)
    end
"""


def test_symbols() -> None:
    facts = said("ruby", SOURCE)
    assert facts.facts.package == ""
    assert facts.symbols == [
        "4-46 module Acme",
        (
            "6-41 class Acme.Runner | bases: Base.Worker, Comparable | interfaces: "
            "Comparable | doc: Runs things."
        ),
        "9-9 field Acme.Runner.LIMIT",
        "10-10 field Acme.Runner.name",
        "10-10 field Acme.Runner.store",
        "12-16 method Acme.Runner.initialize",
        "19-21 method Acme.Runner.build | doc: Makes one. | static",
        "24-26 method Acme.Runner.default | static",
        "29-36 method Acme.Runner.run",
        "38-40 method Acme.Runner.done?",
        "43-45 module Acme.Countable",
        "44-44 method Acme.Countable.count",
        "48-48 class Other",
        "50-52 function top",
    ]
    assert facts.signatures == [
        "module Acme",
        "class Runner < Base::Worker",
        "LIMIT = 3",
        ":name",
        ":store",
        "def initialize(name, size: 1)",
        "def self.build(*args)",
        "def default",
        "def run(job)",
        "def done?",
        "module Countable",
        "def count",
        "class Acme::Other; end",
        "def top(value)",
    ]


def test_imports() -> None:
    assert said("ruby", SOURCE).imports == [
        "1 .: _ <- set * exported",
        "2 .: _ <- lib/store * exported",
    ]


def test_bindings() -> None:
    assert said("ruby", SOURCE).bindings == [
        "Acme.Runner: name = name",
        "Acme.Runner: store = Store()",
        "Acme.Runner.run: made = Job()",
    ]


def test_mentions() -> None:
    assert said("ruby", SOURCE).mentions == [
        "6 Acme.Runner inherits Base.Worker",
        "7 Acme.Runner implements Comparable",
        "14 Acme.Runner.initialize calls Store",
        "15 Acme.Runner.initialize calls super",
        "20 Acme.Runner.build calls new",
        "25 Acme.Runner.default calls build",
        "25 Acme.Runner.default names LIMIT",
        "30 Acme.Runner.run calls Job",
        "31 Acme.Runner.run calls made.go",
        "32 Acme.Runner.run calls self.store.put",
        "33 Acme.Runner.run names helper",
        "34 Acme.Runner.run calls jobs.each",
        "34 Acme.Runner.run calls each.stop",
        "35 Acme.Runner.run calls Acme.Util.log",
        "35 Acme.Runner.run calls job.name",
        "39 Acme.Runner.done? calls self.store.empty",
        "44 Acme.Countable.count calls items.size",
        "48 Other names Acme",
        "51 top calls Acme.Runner.build",
    ]


PLAIN = r"""
    def run(a)
      b = a - 1
      f(b, "a  b")
    end
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    # One.
    def run( a )

      b = a - 1 # two
      f(b,
        "a  b")
    end
"""
    assert hashes("ruby", formatted) == hashes("ruby", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("ruby", PLAIN.replace(old, new)) != hashes("ruby", PLAIN)
