"""Java: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    package com.acme.app;

    import com.acme.util.Helper;
    import com.acme.model.*;
    import static com.acme.Limits.MAX;

    /**
     * Runs things.
     */
    @Service("runner")
    public class Runner<T> extends Base<T> implements Runnable, com.acme.Closing {
        private static final int LIMIT = 3, OTHER = 4;
        private final Helper helper = new Helper();

        public Runner(Store store) {
            super(store);
            this.start();
        }

        /** Runs one. */
        @Override
        public List<Job> run(Optional<Job> job, int... sizes) throws Failure {
            var made = Job.make(job);
            made.go(LIMIT, Limits.MAX);
            for (Job each : all()) {
                each.stop(this::done);
            }
            return helper.jobs().sorted();
        }

        enum Color { RED, GREEN }

        record Pair(Job left, int right) implements Sized {}
    }

    interface Sized extends Countable {
        int size();
    }

    @interface Marked {
        String value();
    }
"""


def test_symbols() -> None:
    facts = said("java", SOURCE)
    assert facts.facts.package == "com.acme.app"
    assert facts.symbols == [
        (
            "11-34 class Runner | bases: Base, Runnable, com.acme.Closing | interfaces: "
            "Runnable, com.acme.Closing | doc: Runs things."
        ),
        "12-12 field Runner.LIMIT | type: int | static",
        "12-12 field Runner.OTHER | type: int",
        "13-13 field Runner.helper | type: Helper",
        "15-18 method Runner.Runner",
        "22-29 method Runner.run | type: List | doc: Runs one.",
        "31-31 enum Runner.Color",
        "31-31 field Runner.Color.RED",
        "31-31 field Runner.Color.GREEN",
        "33-33 class Runner.Pair | bases: Sized | interfaces: Sized",
        "33-33 field Runner.Pair.left | type: Job",
        "33-33 field Runner.Pair.right | type: int",
        "36-38 interface Sized | bases: Countable",
        "37-37 method Sized.size | type: int",
        "40-42 interface Marked",
        "41-41 method Marked.value | type: String",
    ]
    assert facts.signatures == [
        "public class Runner<T> extends Base<T> implements Runnable, com.acme.Closing",
        "private static final int LIMIT = 3",
        "OTHER = 4",
        "private final Helper helper = new Helper()",
        "public Runner(Store store)",
        "public List<Job> run(Optional<Job> job, int... sizes) throws Failure",
        "enum Color",
        "RED",
        "GREEN",
        "record Pair(Job left, int right) implements Sized",
        "Job left",
        "int right",
        "interface Sized extends Countable",
        "int size()",
        "@interface Marked",
        "String value()",
    ]


def test_imports() -> None:
    assert said("java", SOURCE).imports == [
        "3 .: Helper <- com.acme.util : Helper",
        "4 .: _ <- com.acme.model *",
        "5 .: MAX <- com.acme.Limits : MAX",
    ]


def test_bindings() -> None:
    assert said("java", SOURCE).bindings == [
        "Runner: LIMIT : int",
        "Runner: OTHER : int",
        "Runner: helper : Helper",
        "Runner.Runner: store : Store",
        "Runner.run: each : Job",
        "Runner.run: job : Job",
        "Runner.run: made = Job.make()",
        "Runner.Pair: left : Job",
        "Runner.Pair: right : int",
    ]


def test_mentions() -> None:
    assert said("java", SOURCE).mentions == [
        "10 Runner names Service",
        "11 Runner inherits Base",
        "11 Runner implements Runnable",
        "11 Runner implements com.acme.Closing",
        "13 Runner.helper names Helper",
        "13 Runner.helper calls Helper",
        "15 Runner.Runner names Store",
        "16 Runner.Runner calls super",
        "17 Runner.Runner calls this.start",
        "21 Runner.run names Override",
        "22 Runner.run names List",
        "22 Runner.run names Job",
        "22 Runner.run names Optional",
        "22 Runner.run names Job",
        "22 Runner.run names Failure",
        "23 Runner.run calls Job.make",
        "24 Runner.run calls made.go",
        "24 Runner.run names LIMIT",
        "24 Runner.run names Limits.MAX",
        "25 Runner.run names Job",
        "25 Runner.run calls all",
        "26 Runner.run calls each.stop",
        "26 Runner.run names this.done",
        "28 Runner.run calls helper.jobs",
        "28 Runner.run calls helper.jobs().sorted",
        "33 Runner.Pair.left names Job",
        "33 Runner.Pair implements Sized",
        "36 Sized inherits Countable",
        "41 Marked.value names String",
    ]


PLAIN = r"""
    class A {
        int run(int a) { return a - -1 + f("a  b"); }
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    class A {
        // One.
        int run( int a )
        {
            return a - -1 /* two */ + f( "a  b" );
        }
    }
"""
    assert hashes("java", formatted) == hashes("java", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("java", PLAIN.replace(old, new)) != hashes("java", PLAIN)
