"""C#: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    using System;
    using static System.Math;
    using Short = Acme.Util.LongName;

    namespace Acme.App;

    /// <summary>
    /// Runs things.
    /// </summary>
    [Serializable]
    public partial class Runner<T> : Base<T>, IDisposable, Acme.IRunner where T : class
    {
        private const int Limit = 3;
        private readonly Helper _helper = new Helper(), _other;

        public string Name { get; set; } = "";
        public int Size => _helper.Count();

        public Runner(int size, Store store) : base(size)
        {
            this._other = store.Helper;
        }

        [HttpGet("run")]
        public static async Task<Job> RunAsync(Job? job, List<Other> others)
        {
            var made = new Job(Limit);
            Job next = new();
            await made.GoAsync(job?.Name(), $"at {next.Place()}");
            foreach (Other each in others) { each.Stop(); }
            return made.Then(typeof(Result));
        }

        public static Runner<T> operator +(Runner<T> left, Runner<T> right) => left;

        enum Color { Red, Green }
    }

    public interface IRunner : IBase { Job Run(int size); }

    public record Pair(int Left, Store Right) : Sized;
"""


def test_symbols() -> None:
    facts = said("c_sharp", SOURCE)
    assert facts.facts.package == "Acme.App"
    assert facts.symbols == [
        (
            "11-37 class Runner | bases: Base, IDisposable, Acme.IRunner | interfaces: "
            "IDisposable, Acme.IRunner | doc: Runs things."
        ),
        "13-13 field Runner.Limit | type: int | static",
        "14-14 field Runner._helper | type: Helper",
        "14-14 field Runner._other | type: Helper",
        "16-16 field Runner.Name | type: string",
        "17-17 field Runner.Size | type: int",
        "19-22 method Runner.Runner",
        "25-32 method Runner.RunAsync | type: Job | static",
        "34-34 method Runner.+ | type: Runner | static",
        "36-36 enum Runner.Color",
        "36-36 field Runner.Color.Red",
        "36-36 field Runner.Color.Green",
        "39-39 interface IRunner | bases: IBase",
        "39-39 method IRunner.Run | type: Job",
        "41-41 class Pair | bases: Sized",
        "41-41 field Pair.Left | type: int",
        "41-41 field Pair.Right | type: Store",
    ]
    assert facts.signatures == [
        "public partial class Runner<T> : Base<T>, IDisposable, Acme.IRunner where T : class",
        "private const int Limit = 3",
        "private readonly Helper _helper = new Helper()",
        "_other",
        "public string Name",
        "public int Size",
        "public Runner(int size, Store store) : base(size)",
        "public static async Task<Job> RunAsync(Job? job, List<Other> others)",
        "public static Runner<T> operator +(Runner<T> left, Runner<T> right)",
        "enum Color",
        "Red",
        "Green",
        "public interface IRunner : IBase",
        "Job Run(int size)",
        "public record Pair(int Left, Store Right) : Sized",
        "int Left",
        "Store Right",
    ]


def test_imports() -> None:
    assert said("c_sharp", SOURCE).imports == [
        "1 .: _ <- System *",
        "2 .: _ <- System.Math *",
        "3 .: Short <- Acme.Util : LongName",
    ]


def test_bindings() -> None:
    assert said("c_sharp", SOURCE).bindings == [
        "Runner: Limit : int",
        "Runner: Name : string",
        "Runner: Size : int",
        "Runner: _helper : Helper",
        "Runner: _other : Helper",
        "Runner.Runner: size : int",
        "Runner.Runner: store : Store",
        "Runner.RunAsync: each : Other",
        "Runner.RunAsync: job : Job",
        "Runner.RunAsync: made = Job()",
        "Runner.RunAsync: next : Job",
        "Runner.RunAsync: others : List",
        "Runner.+: left : Runner",
        "Runner.+: right : Runner",
        "IRunner.Run: size : int",
        "Pair: Left : int",
        "Pair: Right : Store",
    ]


def test_mentions() -> None:
    assert said("c_sharp", SOURCE).mentions == [
        "10 Runner names Serializable",
        "11 Runner inherits Base",
        "11 Runner implements IDisposable",
        "11 Runner implements Acme.IRunner",
        "14 Runner._helper names Helper",
        "14 Runner._helper calls Helper",
        "17 Runner.Size calls _helper.Count",
        "19 Runner.Runner names Store",
        "21 Runner.Runner names this._other",
        "21 Runner.Runner names store.Helper",
        "24 Runner.RunAsync names HttpGet",
        "25 Runner.RunAsync names Task",
        "25 Runner.RunAsync names Job",
        "25 Runner.RunAsync names Job",
        "25 Runner.RunAsync names List",
        "25 Runner.RunAsync names Other",
        "27 Runner.RunAsync calls Job",
        "27 Runner.RunAsync names Limit",
        "28 Runner.RunAsync calls Job",
        "29 Runner.RunAsync calls made.GoAsync",
        "29 Runner.RunAsync calls job.Name",
        "29 Runner.RunAsync calls next.Place",
        "30 Runner.RunAsync calls each.Stop",
        "31 Runner.RunAsync calls made.Then",
        "31 Runner.RunAsync names Result",
        "34 Runner.+ names Runner",
        "34 Runner.+ names T",
        "34 Runner.+ names Runner",
        "34 Runner.+ names T",
        "34 Runner.+ names Runner",
        "34 Runner.+ names T",
        "39 IRunner inherits IBase",
        "39 IRunner.Run names Job",
        "41 Pair.Right names Store",
        "41 Pair inherits Sized",
    ]


PLAIN = r"""
    class A {
        int run(int a) { return a - -1 + f("a  b"); }
    }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    class A
    {
        // One.
        int run( int a )
        {
            return a - -1 /* two */ + f( "a  b" );
        }
    }
"""
    assert hashes("c_sharp", formatted) == hashes("c_sharp", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("c_sharp", PLAIN.replace(old, new)) != hashes("c_sharp", PLAIN)
