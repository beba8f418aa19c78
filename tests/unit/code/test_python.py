"""Python: what a source says, side by side."""

from __future__ import annotations

import pytest

from tests.support.facts import hashes, said

SOURCE = '''
    """What the module is for."""
    import os.path, sys as s
    from . import near
    from ..models import (Author,  # who wrote
        Book as B)
    from stars import *
    LIMIT: int = 3
    settings = LazySettings()

    @register(1)
    class Shelf(Base, mixins.Sorted, Generic[T], metaclass=Meta):
        """Holds books.

        In order."""
        objects = Manager()
        owner: Optional["Author"] = None

        def __init__(self, first: Author, second=None, *, third: "B | None" = None) -> None:
            self.items = []
            self.manager = Manager(first).make()
            self.third: B = third

        @property
        def top(self) -> B:
            # Not a call: gone()
            return self.items[0].open(self.manager)

        @classmethod
        async def load(cls, B):
            loaded = await cls.manager.load(f"a{B.real(1)} {LIMIT}", near=near)
            super().load().rank(
                [1, 2],
            ).last()
            "x".join(one for one in self.top)
            with open("f") as handle:
                handle.read()

            def inner():
                return os.path.join(Author)

            return loaded
'''


def test_symbols() -> None:
    assert said("python", SOURCE).symbols == [
        "7-7 constant LIMIT | type: int",
        "8-8 constant settings",
        "11-41 class Shelf | bases: Base, mixins.Sorted, Generic | doc: Holds books.",
        "15-15 field Shelf.objects",
        "16-16 field Shelf.owner | type: Author",
        "18-21 method Shelf.__init__",
        "24-26 method Shelf.top | type: B | property",
        "29-41 method Shelf.load | static",
        "38-39 function Shelf.load.inner",
    ]


def test_signatures() -> None:
    assert said("python", SOURCE).signatures == [
        "LIMIT: int = 3",
        "settings = LazySettings()",
        "class Shelf(Base, mixins.Sorted, Generic[T], metaclass=Meta)",
        "objects = Manager()",
        'owner: Optional["Author"] = None',
        'def __init__(self, first: Author, second=None, *, third: "B | None" = None) -> None',
        "def top(self) -> B",
        "async def load(cls, B)",
        "def inner()",
    ]


def test_imports() -> None:
    assert said("python", SOURCE).imports == [
        "2 .: os <- os",
        "2 .: os.path <- os.path",
        "2 .: s <- sys",
        "3 .: near <- . : near",
        "4 .: Author <- ..models : Author",
        "4 .: B <- ..models : Book",
        "6 .: _ <- stars * exported",
    ]


def test_bindings() -> None:
    assert said("python", SOURCE).bindings == [
        ".: LIMIT : int",
        ".: settings = LazySettings()",
        "Shelf: manager = Manager().make()",
        "Shelf: objects = Manager()",
        "Shelf: owner : Author",
        "Shelf: third : B",
        "Shelf.__init__: first : Author",
        "Shelf.__init__: third : B",
        "Shelf.load: B = ?",
        "Shelf.load: handle = open()",
        "Shelf.load: loaded = cls.manager.load()",
    ]


def test_mentions() -> None:
    assert said("python", SOURCE).mentions == [
        "8 settings calls LazySettings",
        "10 . calls register",
        "11 Shelf inherits Base",
        "11 Shelf inherits mixins.Sorted",
        "11 Shelf inherits Generic",
        "15 Shelf.objects calls Manager",
        "18 Shelf.__init__ names Author",
        "20 Shelf.__init__ calls Manager",
        "20 Shelf.__init__ calls Manager().make",
        "21 Shelf.__init__ names self.third",
        "21 Shelf.__init__ names B",
        "24 Shelf.top names B",
        "26 Shelf.top calls ?.open",
        "26 Shelf.top names self.manager",
        "29 Shelf.load names B",
        "30 Shelf.load calls cls.manager.load",
        "30 Shelf.load calls B.real",
        "30 Shelf.load names LIMIT",
        "30 Shelf.load names near",
        "31 Shelf.load calls super",
        "31 Shelf.load calls super().load",
        "31 Shelf.load calls super().load().rank",
        "33 Shelf.load calls super().load().rank().last",
        "34 Shelf.load calls ''.join",
        "34 Shelf.load names self.top",
        "35 Shelf.load calls open",
        "36 Shelf.load calls handle.read",
        "39 Shelf.load.inner calls os.path.join",
        "39 Shelf.load.inner names Author",
    ]


PLAIN = """
    class Shelf:
        def put(self, book):
            if book:
                self.books.append(book)
                return 1
            for other in self.books: other.move(1, -2)
            return "a  b"
"""


@pytest.mark.parametrize(
    "formatted",
    [
        """
    # A comment.
    class Shelf:

      def put(self,book) :  # another
          if book:
              # and one
              self.books.append( book )

              return 1
          for other in self.books:
              other . move(
                  1,
                  -2)
          return "a  b"
""",
    ],
)
def test_formatting_and_comments_leave_the_hash(formatted: str) -> None:
    assert hashes("python", formatted) == hashes("python", PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("append", "extend"),
        ("1, -2", "1 - 2"),
        ('"a  b"', '"a b"'),
        ("return 1\n", "return\n            1\n"),
        ("            return 1\n", "        return 1\n"),
        ("put(self", "put(that"),
    ],
)
def test_any_other_change_makes_another_hash(old: str, new: str) -> None:
    changed = PLAIN.replace(old, new)
    assert changed != PLAIN
    before, after = hashes("python", PLAIN), hashes("python", changed)
    assert before["Shelf.put"] != after["Shelf.put"]
    assert before["Shelf"] != after["Shelf"]


def test_a_change_leaves_the_hashes_around() -> None:
    source = PLAIN + "    def other():\n        pass\n"
    changed = source.replace("append", "extend")
    assert hashes("python", source)["other"] == hashes("python", changed)["other"]


def test_a_decorator_is_part_of_what_it_decorates() -> None:
    plain, cached = "def f():\n    pass\n", "@cache\ndef f():\n    pass\n"
    assert hashes("python", plain) != hashes("python", cached)
