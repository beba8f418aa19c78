"""PHP: what a source says, side by side."""

from __future__ import annotations

from tests.support.facts import hashes, said

SOURCE = r"""
    <?php
    namespace Acme\App;

    use Acme\Models\User;
    use Acme\Util as U, Acme\Log;
    use function Acme\helper;
    use Acme\{Store, Jobs as J};
    require_once __DIR__ . '/lib.php';

    const LIMIT = 3;

    /** Runs things. */
    #[Service]
    abstract class Runner extends Base implements IRunner, \Acme\Closing
    {
        use Logged;

        const MAX = 1;
        private ?Store $store;
        public static int $count = 0;

        public function __construct(private Helper $helper, int $size = 0)
        {
            $this->store = new Store($size);
            parent::__construct();
        }

        public static function make(User|null $user): static
        {
            $made = new User();
            $made->save(self::MAX, User::class);
            $user?->store->put("for {$made->name()}");
            return static::done(U::log());
        }

        abstract protected function run(array $jobs): ?User;
    }

    interface IRunner extends Sized
    {
        public function size(): int;
    }

    trait Logged
    {
        function log() {}
    }

    enum Suit: string
    {
        case Hearts = 'H';
    }

    function top(User $user): string
    {
        return helper($user) . \Acme\go();
    }
"""


def test_symbols() -> None:
    facts = said("php", SOURCE)
    assert facts.facts.package == "Acme.App"
    assert facts.symbols == [
        "10-10 constant LIMIT",
        (
            "14-37 class Runner | bases: Base, IRunner, Acme.Closing, Logged | interfaces: "
            "IRunner, Acme.Closing | doc: Runs things."
        ),
        "18-18 field Runner.MAX",
        "19-19 field Runner.store | type: Store",
        "20-20 field Runner.count | type: int | static",
        "22-26 method Runner.__construct",
        "28-34 method Runner.make | type: static | static",
        "36-36 method Runner.run | type: User",
        "39-42 interface IRunner | bases: Sized",
        "41-41 method IRunner.size | type: int",
        "44-47 trait Logged",
        "46-46 method Logged.log",
        "49-52 enum Suit",
        "51-51 field Suit.Hearts",
        "54-57 function top | type: string",
    ]
    assert facts.signatures == [
        "const LIMIT = 3",
        "abstract class Runner extends Base implements IRunner, \\Acme\\Closing",
        "const MAX = 1",
        "private ?Store $store",
        "public static int $count = 0",
        "public function __construct(private Helper $helper, int $size = 0)",
        "public static function make(User|null $user): static",
        "abstract protected function run(array $jobs): ?User",
        "interface IRunner extends Sized",
        "public function size(): int",
        "trait Logged",
        "function log()",
        "enum Suit: string",
        "case Hearts = 'H'",
        "function top(User $user): string",
    ]


def test_imports() -> None:
    assert said("php", SOURCE).imports == [
        "4 .: User <- Acme\\Models : User",
        "5 .: U <- Acme : Util",
        "5 .: Log <- Acme : Log",
        "6 .: helper <- Acme : helper",
        "7 .: Store <- Acme : Store",
        "7 .: J <- Acme : Jobs",
        "8 .: _ <- lib.php * exported",
    ]


def test_bindings() -> None:
    assert said("php", SOURCE).bindings == [
        "Runner: count : int",
        "Runner: helper : Helper",
        "Runner: store : Store",
        "Runner: store = Store()",
        "Runner.__construct: helper : Helper",
        "Runner.__construct: size : int",
        "Runner.make: made = User()",
        "Runner.make: user : User",
        "Runner.run: jobs : array",
        "top: user : User",
    ]


def test_mentions() -> None:
    assert said("php", SOURCE).mentions == [
        "13 Runner names Service",
        "14 Runner inherits Base",
        "14 Runner implements IRunner",
        "14 Runner implements Acme.Closing",
        "16 Runner inherits Logged",
        "19 Runner.store names Store",
        "22 Runner.__construct names Helper",
        "24 Runner.__construct calls Store",
        "25 Runner.__construct calls parent.__construct",
        "28 Runner.make names User",
        "30 Runner.make calls User",
        "31 Runner.make calls made.save",
        "31 Runner.make names self.MAX",
        "31 Runner.make names User",
        "32 Runner.make calls user.store.put",
        "32 Runner.make calls made.name",
        "33 Runner.make calls static.done",
        "33 Runner.make calls U.log",
        "36 Runner.run names User",
        "39 IRunner inherits Sized",
        "54 top names User",
        "56 top calls helper",
        "56 top calls Acme.go",
    ]


PLAIN = r"""
    <?php
    function run($a) { return $a - -1 + f("a  b"); }
"""


def test_formatting_and_comments_leave_the_hash() -> None:
    formatted = r"""
    <?php
    // One.
    function run( $a )
    {
        return $a - -1 /* two */ + f( "a  b" );
    }
"""
    assert hashes("php", formatted) == hashes("php", PLAIN)


def test_any_other_change_makes_another_hash() -> None:
    for old, new in (("1", "2"), ("run", "ran")):
        assert hashes("php", PLAIN.replace(old, new)) != hashes("php", PLAIN)
